// The kernels for x86-64-v4: AVX-512.
#ifdef __x86_64__
#define PSAL_PATH v4
#define PSAL_TARGET "arch=x86-64-v4"
#include "path.h"
#endif
