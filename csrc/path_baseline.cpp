// The kernels for any machine.
#define PSAL_PATH baseline
#include "path.h"
