#ifndef RELINK_CBLUEZ_H
#define RELINK_CBLUEZ_H

#include <stddef.h>
#include <stdint.h>

#endif
