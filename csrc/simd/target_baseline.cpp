// The kernels for any machine.
#define PSAL_TARGET baseline
#include "../kernels/table-inl.h"
