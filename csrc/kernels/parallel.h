// Threads for the kernels. ops/parallel.cpp implements this with torch's threads; the kernels themselves need no torch.

#ifndef PSAL_KERNELS_PARALLEL_H_
#define PSAL_KERNELS_PARALLEL_H_

#include <cstdint>

namespace psal {

// Runs task(0) … task(count − 1) on torch's threads; each thread takes the next task that is left. When called from
// inside a task, it runs them in order on the calling thread. Rethrows the first exception of a task.
void run_tasks(int64_t count, void (*task)(int64_t, const void*), const void* context);

}  // namespace psal

#endif  // PSAL_KERNELS_PARALLEL_H_
