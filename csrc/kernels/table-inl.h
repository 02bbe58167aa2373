// The table of all kernels for one target. The kernels are templates and carry their target with them, so this needs no
// PSAL_BEGIN_TARGET.

#if defined(PSAL_KERNELS_TABLE_INL_H_) == defined(PSAL_TARGET_TOGGLE)
#ifdef PSAL_KERNELS_TABLE_INL_H_
#undef PSAL_KERNELS_TABLE_INL_H_
#else
#define PSAL_KERNELS_TABLE_INL_H_
#endif

#include "../simd/target.h"
#include "attend-inl.h"
#include "attend_gradient-inl.h"
#include "poisson-inl.h"
#include "score-inl.h"
#include "score_gradient-inl.h"
#include "search-inl.h"
#include "table.h"

namespace psal::PSAL_TARGET {

extern const Kernels kernels;
const Kernels kernels = {
    .float32 = {.search = search<float>,
                .score = score<float>,
                .score_gradient = score_gradient<float>,
                .attend = attend<float>,
                .attend_gradient = attend_gradient<float>,
                .solve_poisson = solve_poisson<float>},
    .float64 = {.search = search<double>,
                .score = score<double>,
                .score_gradient = score_gradient<double>,
                .attend = attend<double>,
                .attend_gradient = attend_gradient<double>,
                .solve_poisson = solve_poisson<double>},
};

}  // namespace psal::PSAL_TARGET

#endif  // per-target include guard
