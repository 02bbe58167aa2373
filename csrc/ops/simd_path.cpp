// The ops simd_path and set_simd_path.

#include <torch/csrc/stable/library.h>

#include "../simd/dispatch.h"

namespace psal {
namespace {

int64_t get_path() { return int64_t(simd_path()); }

int64_t set_path(int64_t path) { return int64_t(set_simd_path(SimdPath(path))); }

}  // namespace
}  // namespace psal

STABLE_TORCH_LIBRARY_IMPL(psal, CompositeExplicitAutograd, m) {
  m.impl("simd_path", TORCH_BOX(&psal::get_path));
  m.impl("set_simd_path", TORCH_BOX(&psal::set_path));
}
