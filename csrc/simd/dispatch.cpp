#include "dispatch.h"

#include <atomic>
#include <stdexcept>
#include <string>

namespace psal {

// Defined in kernels/table-inl.h, once per target.
namespace baseline {
extern const Kernels kernels;
}
#ifdef __x86_64__
namespace v3 {
extern const Kernels kernels;
}
namespace v4 {
extern const Kernels kernels;
}
#endif

namespace {

SimdPath best_path() {
#ifdef __x86_64__
  __builtin_cpu_init();
  if (__builtin_cpu_supports("x86-64-v4")) return SimdPath::v4;
  if (__builtin_cpu_supports("x86-64-v3")) return SimdPath::v3;
#endif
  return SimdPath::baseline;
}

std::atomic<SimdPath>& current_path() {
  static std::atomic<SimdPath> path{best_path()};
  return path;
}

}  // namespace

SimdPath simd_path() { return current_path(); }

SimdPath set_simd_path(SimdPath path) {
  if (path < SimdPath::baseline || path > best_path())
    throw std::runtime_error("psal: this machine has no SIMD path " + std::to_string(int64_t(path)));
  return current_path().exchange(path);
}

const Kernels& kernels() {
#ifdef __x86_64__
  switch (current_path()) {
    case SimdPath::v4: return v4::kernels;
    case SimdPath::v3: return v3::kernels;
    case SimdPath::baseline: break;
  }
#endif
  return baseline::kernels;
}

}  // namespace psal
