// From torch's tensors to what the kernels take.

#ifndef PSAL_OPS_TENSORS_H_
#define PSAL_OPS_TENSORS_H_

#include <stdexcept>
#include <vector>

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include "../kernels/arguments.h"
#include "../kernels/parallel.h"
#include "../kernels/tuning.h"

namespace psal {

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

inline Shape shape_of(const Tensor& tensor) {
  Shape shape;
  const int64_t dims = tensor.dim() - 2;
  for (int64_t axis = 0; axis < dims; ++axis) shape.size[kAxes - dims + axis] = tensor.size(2 + axis);
  return shape;
}

inline Patch patch_of(const std::vector<int64_t>& sides) {
  Patch patch;
  patch.dims = int(sides.size());
  for (size_t axis = 0; axis < sides.size(); ++axis) patch.size[kAxes - sides.size() + axis] = sides[axis];
  return patch;
}

// Batch element b of a (B, C, *S) tensor.
template <typename T>
View<const T> view_of(const Tensor& tensor, int64_t b) {
  View<const T> view{
      static_cast<const T*>(tensor.const_data_ptr()) + b * tensor.stride(0), tensor.stride(1), {0, 0, 0}};
  const int64_t dims = tensor.dim() - 2;
  for (int64_t axis = 0; axis < dims; ++axis) view.stride[kAxes - dims + axis] = tensor.stride(2 + axis);
  return view;
}

// Start of batch element b of a contiguous tensor.
template <typename T>
T* element(const Tensor& tensor, int64_t b) {
  return static_cast<T*>(tensor.mutable_data_ptr()) + (tensor.size(0) ? tensor.numel() / tensor.size(0) * b : 0);
}

// Calls run(float()) or run(double()) for a tensor's type.
template <typename Run>
void for_type(const Tensor& tensor, const Run& run) {
  if (tensor.scalar_type() == ScalarType::Float) return run(float());
  if (tensor.scalar_type() == ScalarType::Double) return run(double());
  throw std::runtime_error("psal: the kernels take float32 and float64");
}

// Small maps run side by side, large ones one after the other, each on all threads.
template <typename Body>
void for_batch(int64_t batch, int64_t pixels, const Body& body) {
  if (pixels >= kSequentialBatchPixels) {
    for (int64_t b = 0; b < batch; ++b) body(b);
    return;
  }
  run_tasks(batch, [](int64_t b, const void* context) { (*static_cast<const Body*>(context))(b); }, &body);
}

}  // namespace psal

#endif  // PSAL_OPS_TENSORS_H_
