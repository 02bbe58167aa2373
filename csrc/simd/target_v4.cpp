// The kernels for x86-64-v4: AVX-512.
#ifdef __x86_64__
#define PSAL_TARGET v4
#include "../kernels/table-inl.h"
#endif
