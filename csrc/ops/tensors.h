// From torch's tensors to the structs that the kernels take.

#ifndef PSAL_OPS_TENSORS_H_
#define PSAL_OPS_TENSORS_H_

#include <cstdint>
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

// The spatial shape of a (B, C, *S) tensor.
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

// The sizes (B, channels, *S) of an output on the grid of a (B, C, *S) tensor.
inline std::vector<int64_t> sizes_on_grid_of(const Tensor& tensor, int64_t channels) {
  std::vector<int64_t> sizes{tensor.size(0), channels};
  for (int64_t axis = 2; axis < tensor.dim(); ++axis) sizes.push_back(tensor.size(axis));
  return sizes;
}

// Batch element b of a (B, C, *S) tensor of any strides.
template <typename T>
View<const T> view_of(const Tensor& tensor, int64_t b) {
  View<const T> view = {.data = static_cast<const T*>(tensor.const_data_ptr()) + b * tensor.stride(0),
                        .channel_stride = tensor.stride(1),
                        .stride = {0, 0, 0}};
  const int64_t dims = tensor.dim() - 2;
  for (int64_t axis = 0; axis < dims; ++axis) view.stride[kAxes - dims + axis] = tensor.stride(2 + axis);
  return view;
}

// The first value of batch element b of a contiguous tensor.
template <typename T>
T* data_of(const Tensor& tensor, int64_t b) {
  return static_cast<T*>(tensor.mutable_data_ptr()) + (tensor.size(0) ? tensor.numel() / tensor.size(0) * b : 0);
}

// Calls run(float()) or run(double()), by the tensor's type.
template <typename Run>
void with_type(const Tensor& tensor, const Run& run) {
  if (tensor.scalar_type() == ScalarType::Float) return run(float());
  if (tensor.scalar_type() == ScalarType::Double) return run(double());
  throw std::runtime_error("psal: the kernels take float32 and float64");
}

// Calls body(b) for every batch element: small maps in parallel, one thread each; large ones in order, on all threads.
template <typename Body>
void for_batch(int64_t batch, int64_t pixels, const Body& body) {
  if (pixels >= kSequentialBatchPixels) {
    for (int64_t b = 0; b < batch; ++b) body(b);
    return;
  }
  run_tasks(batch, [](int64_t b, const void* context) { (*static_cast<const Body*>(context))(b); }, &body);
}

// The part of the arguments that searching and scoring share.
struct ProblemOptions {
  const std::vector<int64_t>& patch_size;
  int64_t similarity, padding;
};

template <typename T>
Problem<T> problem_of(const Tensor& query, const Tensor& key, int64_t b, const ProblemOptions& options) {
  return {.query = view_of<T>(query, b),
          .key = view_of<T>(key, b),
          .query_shape = shape_of(query),
          .key_shape = shape_of(key),
          .channels = query.size(1),
          .patch = patch_of(options.patch_size),
          .similarity = Similarity(options.similarity),
          .padding = Padding(options.padding)};
}

}  // namespace psal

#endif  // PSAL_OPS_TENSORS_H_
