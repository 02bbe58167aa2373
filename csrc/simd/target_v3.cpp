// The kernels for x86-64-v3: AVX2 and FMA.
#ifdef __x86_64__
#define PSAL_TARGET v3
#include "../kernels/table-inl.h"
#endif
