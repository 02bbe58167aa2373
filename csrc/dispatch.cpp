// Which instruction set's kernels run: the best that the machine has, unless a lower one is asked for.

#include <atomic>
#include <stdexcept>
#include <string>

#include <torch/csrc/stable/library.h>

#include "kernels.h"

namespace psal {

namespace baseline { extern const Kernels kernels; }
#ifdef __x86_64__
namespace v3 { extern const Kernels kernels; }
namespace v4 { extern const Kernels kernels; }
#endif

namespace {

// The order is that of the names in src/psal/ops/native.py.
enum Path : int64_t { kBaseline, kV3, kV4 };

int64_t best_path() {
#ifdef __x86_64__
  __builtin_cpu_init();
  if (__builtin_cpu_supports("x86-64-v4")) return kV4;
  if (__builtin_cpu_supports("x86-64-v3")) return kV3;
#endif
  return kBaseline;
}

std::atomic<int64_t>& chosen_path() {
  static std::atomic<int64_t> path{best_path()};
  return path;
}

int64_t simd_path() { return chosen_path(); }

int64_t set_simd_path(int64_t path) {
  if (path < kBaseline || path > best_path())
    throw std::runtime_error("psal: this machine has no SIMD path " + std::to_string(path));
  return chosen_path().exchange(path);
}

}  // namespace

const Kernels& kernels() {
#ifdef __x86_64__
  switch (chosen_path()) {
    case kV4: return v4::kernels;
    case kV3: return v3::kernels;
  }
#endif
  return baseline::kernels;
}

}  // namespace psal

STABLE_TORCH_LIBRARY_IMPL(psal, CompositeExplicitAutograd, m) {
  m.impl("simd_path", TORCH_BOX(&psal::simd_path));
  m.impl("set_simd_path", TORCH_BOX(&psal::set_simd_path));
}
