// Threads for the kernels. ops/parallel.cpp implements this with torch's own, so that kernels need no torch.

#ifndef PSAL_KERNELS_PARALLEL_H_
#define PSAL_KERNELS_PARALLEL_H_

#include <cstdint>

namespace psal {

// Runs task(0) … task(count − 1) on torch's threads, each thread taking the next one that is left. Called from
// inside a task it runs them one after the other. A task's exception is thrown again here.
void run_tasks(int64_t count, void (*task)(int64_t, const void*), const void* context);

}  // namespace psal

#endif  // PSAL_KERNELS_PARALLEL_H_
