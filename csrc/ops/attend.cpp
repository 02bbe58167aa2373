// The ops attend and attend_backward. Aggregation is attention with a patch of more than one pixel.

#include <algorithm>
#include <limits>
#include <tuple>

#include "../simd/dispatch.h"
#include "tensors.h"

namespace psal {
namespace {

using torch::stable::contiguous;
using torch::stable::new_empty;

// Contiguous, except for the value.
struct AttendTensors {
  Tensor index, score, value, out, log_mass;
};

// 1 / temperature, kept within the normal numbers: it multiplies differences of scores, and 0 · ∞ would be NaN.
template <typename T>
T inverse_of(double temperature) {
  return T(std::clamp<double>(1 / temperature, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
}

template <typename T>
AttendArguments<T> arguments_of(const AttendTensors& tensors, int64_t b, const std::vector<int64_t>& patch_size,
                                double temperature) {
  return {.query_shape = shape_of(tensors.index),
          .key_shape = shape_of(tensors.value),
          .patch = patch_of(patch_size),
          .channels = tensors.value.size(1),
          .neighbors = tensors.index.size(1),
          .inverse_temperature = inverse_of<T>(temperature),
          .index = data_of<int64_t>(tensors.index, b),
          .score = data_of<T>(tensors.score, b),
          .value = view_of<T>(tensors.value, b),
          .out = data_of<T>(tensors.out, b),
          .log_mass = data_of<T>(tensors.log_mass, b)};
}

std::tuple<Tensor, Tensor> attend(const Tensor& index, const Tensor& score, const Tensor& value,
                                  const std::vector<int64_t>& patch_size, double temperature) {
  const AttendTensors tensors = {.index = contiguous(index),
                                 .score = contiguous(score),
                                 .value = value,
                                 .out = new_empty(value, sizes_on_grid_of(index, value.size(1))),
                                 .log_mass = new_empty(score, sizes_on_grid_of(index, 2))};
  with_type(value, [&](auto zero) {
    using T = decltype(zero);
    for_batch(index.size(0), shape_of(index).count(),
              [&](int64_t b) { kernels().of<T>().attend(arguments_of<T>(tensors, b, patch_size, temperature)); });
  });
  return {tensors.out, tensors.log_mass};
}

std::tuple<Tensor, Tensor> attend_backward(const Tensor& grad_out, const Tensor& index, const Tensor& score,
                                           const Tensor& value, const Tensor& out, const Tensor& log_mass,
                                           const std::vector<int64_t>& patch_size, double temperature) {
  const AttendTensors tensors = {.index = contiguous(index),
                                 .score = contiguous(score),
                                 .value = value,
                                 .out = contiguous(out),
                                 .log_mass = contiguous(log_mass)};
  const Tensor grad_score = new_empty(score, score.sizes()), grad_value = new_empty(value, value.sizes());
  with_type(value, [&](auto zero) {
    using T = decltype(zero);
    for_batch(index.size(0), shape_of(index).count(), [&](int64_t b) {
      kernels().of<T>().attend_gradient({.forward = arguments_of<T>(tensors, b, patch_size, temperature),
                                         .grad_out = view_of<T>(grad_out, b),
                                         .grad_score = data_of<T>(grad_score, b),
                                         .grad_value = data_of<T>(grad_value, b)});
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
