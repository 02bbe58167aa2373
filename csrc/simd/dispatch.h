// Which instruction set's kernels run: the best that the machine has, unless a lower one is asked for.

#ifndef PSAL_SIMD_DISPATCH_H_
#define PSAL_SIMD_DISPATCH_H_

#include <cstdint>

#include "../kernels/table.h"

namespace psal {

// In the order of SIMD_PATHS in src/psal/ops/native.py.
enum class SimdPath : int64_t { baseline, v3, v4 };

// The instruction set in use.
SimdPath simd_path();

// Chooses another one; returns the one in use before. Throws std::runtime_error if the machine does not have it.
SimdPath set_simd_path(SimdPath path);

// The kernels for the instruction set in use.
const Kernels& kernels();

}  // namespace psal

#endif  // PSAL_SIMD_DISPATCH_H_
