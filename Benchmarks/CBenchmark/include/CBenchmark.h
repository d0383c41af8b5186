#ifndef RELINK_CBENCHMARK_H
#define RELINK_CBENCHMARK_H

#include <stdint.h>

#endif
