// The op solve_poisson.

#include "../simd/dispatch.h"
#include "tensors.h"

namespace psal {
namespace {

using torch::stable::contiguous;

Tensor solve_poisson(const Tensor& right_side_, const Tensor& unknown_, const Tensor& domain_, double screening,
                     double tolerance) {
  const Tensor right_side = contiguous(right_side_), unknown = contiguous(unknown_), domain = contiguous(domain_);
  const int64_t height = unknown.size(0), width = unknown.size(1);
  const Tensor out = torch::stable::new_zeros(right_side, {right_side.size(0), height, width});
  if (out.numel() == 0) return out;
  with_type(right_side, [&](auto zero) {
    using T = decltype(zero);
    kernels().of<T>().solve_poisson({.height = height,
                                     .width = width,
                                     .channels = right_side.size(0),
                                     .right_side = static_cast<const T*>(right_side.const_data_ptr()),
                                     .unknown = static_cast<const bool*>(unknown.const_data_ptr()),
                                     .domain = static_cast<const bool*>(domain.const_data_ptr()),
                                     .screening = T(screening),
                                     .tolerance = T(tolerance),
                                     .out = static_cast<T*>(out.mutable_data_ptr())});
  });
  return out;
}

}  // namespace
}  // namespace psal

STABLE_TORCH_LIBRARY_IMPL(psal, CPU, m) { m.impl("solve_poisson", TORCH_BOX(&psal::solve_poisson)); }
