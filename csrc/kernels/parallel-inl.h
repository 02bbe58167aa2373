// Parallel loops on top of run_tasks().

#if defined(PSAL_KERNELS_PARALLEL_INL_H_) == defined(PSAL_TARGET_TOGGLE)
#ifdef PSAL_KERNELS_PARALLEL_INL_H_
#undef PSAL_KERNELS_PARALLEL_INL_H_
#else
#define PSAL_KERNELS_PARALLEL_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "../simd/target.h"
#include "parallel.h"

PSAL_BEGIN_TARGET
namespace psal::PSAL_TARGET {

// Calls task(0) … task(count − 1), in parallel.
template <typename Task>
inline void for_each_task(int64_t count, const Task& task) {
  run_tasks(count, [](int64_t i, const void* context) { (*static_cast<const Task*>(context))(i); }, &task);
}

// Calls body(begin, end) for consecutive ranges of [0, count) of `grain` elements, in parallel. The grain must not
// depend on the thread count: results would.
template <typename Body>
inline void for_ranges(int64_t count, int64_t grain, const Body& body) {
  for_each_task((count + grain - 1) / grain, [&](int64_t i) { body(i * grain, std::min(count, (i + 1) * grain)); });
}

}  // namespace psal::PSAL_TARGET
PSAL_END_TARGET

#endif  // per-target include guard
