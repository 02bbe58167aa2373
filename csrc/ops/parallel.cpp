// Implements kernels/parallel.h with torch's threads, so that torch.set_num_threads applies.

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include <torch/csrc/stable/ops.h>

#include "../kernels/parallel.h"

namespace psal {

namespace {
thread_local bool inside_task = false;
}

void run_tasks(int64_t count, void (*task)(int64_t, const void*), const void* context) {
  const int64_t threads = std::min<int64_t>(count, torch::stable::get_num_threads());
  if (threads <= 1 || inside_task) {
    for (int64_t i = 0; i < count; ++i) task(i, context);
    return;
  }
  std::atomic<int64_t> next{0};
  std::exception_ptr error;
  std::mutex error_lock;
  const auto work = [&](int64_t, int64_t) {
    inside_task = true;
    try {
      for (int64_t i = next++; i < count; i = next++) task(i, context);
    } catch (...) {
      next = count;
      const std::lock_guard<std::mutex> lock(error_lock);
      if (!error) error = std::current_exception();
    }
    inside_task = false;
  };
#ifdef PSAL_STD_THREADS  // ThreadSanitizer cannot see how OpenMP, which torch uses, synchronizes its threads
  std::vector<std::thread> others;
  for (int64_t i = 1; i < threads; ++i) others.emplace_back(work, 0, 0);
  work(0, 0);
  for (std::thread& other : others) other.join();
#else
  torch::stable::parallel_for(0, threads, 1, work);
#endif
  if (error) std::rethrow_exception(error);
}

}  // namespace psal
