// The ops attend and attend_backward; aggregation is attention with a patch of more than one pixel.

#include <tuple>

#include "../simd/dispatch.h"
#include "tensors.h"

namespace psal {
namespace {

using torch::stable::contiguous;
using torch::stable::new_empty;

template <typename T>
AttendArguments<T> arguments_of(const Tensor& index, const Tensor& score, const Tensor& value, const Tensor& out,
                                const Tensor& log_mass, int64_t b, const std::vector<int64_t>& patch_size,
                                double temperature) {
  return {shape_of(index),      shape_of(value),    patch_of(patch_size),       value.size(1),
          index.size(1),        T(temperature),     element<int64_t>(index, b), element<T>(score, b),
          view_of<T>(value, b), element<T>(out, b), element<T>(log_mass, b)};
}

std::tuple<Tensor, Tensor> attend(const Tensor& index_, const Tensor& score_, const Tensor& value,
                                  const std::vector<int64_t>& patch_size, double temperature) {
  const Tensor index = contiguous(index_), score = contiguous(score_);
  std::vector<int64_t> shape{index.size(0), value.size(1)};
  for (int64_t axis = 2; axis < index.dim(); ++axis) shape.push_back(index.size(axis));
  const Tensor out = new_empty(value, shape);
  shape[1] = 2;
  const Tensor log_mass = new_empty(score, shape);
  for_type(value, [&](auto zero) {
    using T = decltype(zero);
    for_batch(index.size(0), shape_of(index).count(), [&](int64_t b) {
      kernels().of<T>().attend(arguments_of<T>(index, score, value, out, log_mass, b, patch_size, temperature));
    });
  });
  return {out, log_mass};
}

std::tuple<Tensor, Tensor> attend_backward(const Tensor& grad, const Tensor& index_, const Tensor& score_,
                                           const Tensor& value, const Tensor& out_, const Tensor& log_mass_,
                                           const std::vector<int64_t>& patch_size, double temperature) {
  const Tensor index = contiguous(index_), score = contiguous(score_);
  const Tensor out = contiguous(out_), log_mass = contiguous(log_mass_);
  const Tensor grad_score = new_empty(score, score.sizes()), grad_value = new_empty(value, value.sizes());
  for_type(value, [&](auto zero) {
    using T = decltype(zero);
    for_batch(index.size(0), shape_of(index).count(), [&](int64_t b) {
      kernels().of<T>().attend_gradient(
          {arguments_of<T>(index, score, value, out, log_mass, b, patch_size, temperature), view_of<T>(grad, b),
           element<T>(grad_score, b), element<T>(grad_value, b)});
    });
  });
  return {grad_score, grad_value};
}

}  // namespace
}  // namespace psal

STABLE_TORCH_LIBRARY_IMPL(psal, CPU, m) {
  m.impl("attend", TORCH_BOX(&psal::attend));
  m.impl("attend_backward", TORCH_BOX(&psal::attend_backward));
}
