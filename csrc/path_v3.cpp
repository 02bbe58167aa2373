// The kernels for x86-64-v3: AVX2 and FMA.
#ifdef __x86_64__
#define PSAL_PATH v3
#define PSAL_TARGET "arch=x86-64-v3"
#include "path.h"
#endif
