#include "CBenchmark.h"
