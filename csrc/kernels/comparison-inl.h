// The cost of two patches, lower is better: the squared distance ("l2"), minus the dot product ("dot"), minus the dot
// product over the key's norm ("cosine"; the query's norm does not change the order of its keys).

#if defined(PSAL_KERNELS_COMPARISON_INL_H_) == defined(PSAL_TARGET_TOGGLE)
#ifdef PSAL_KERNELS_COMPARISON_INL_H_
#undef PSAL_KERNELS_COMPARISON_INL_H_
#else
#define PSAL_KERNELS_COMPARISON_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "../simd/lanes-inl.h"
#include "../simd/target.h"
#include "arguments.h"
#include "buffer-inl.h"
#include "padded_map-inl.h"
#include "parallel-inl.h"
#include "patch_sum-inl.h"
#include "tuning.h"

PSAL_BEGIN_TARGET
namespace psal::PSAL_TARGET {

// Padded maps for comparing patches. The border is at least one pixel wide, so that a step out of the grid leads to a
// border pixel, which is never a valid key.
template <typename T>
PaddedMap<T> comparison_map(const Problem<T>& problem, const View<const T>& view, const Shape& shape) {
  Border border;
  for (int axis = kAxes - problem.patch.dims; axis < kAxes; ++axis)
    border[axis] = std::max<int64_t>(1, problem.patch.radius(axis));
  return padded_map(view, shape, problem.channels, border, problem.padding);
}

template <typename T>
PaddedMap<T> query_map(const Problem<T>& problem) {
  return comparison_map(problem, problem.query, problem.query_shape);
}

template <typename T>
PaddedMap<T> key_map(const Problem<T>& problem) {
  return comparison_map(problem, problem.key, problem.key_shape);
}

// How many values a patch's first one is before that of its center.
template <typename T>
int64_t patch_corner(const PaddedMap<T>& map, const Patch& patch) {
  int64_t pixels = 0;
  for (int axis = 0; axis < kAxes; ++axis) pixels += patch.radius(axis) * map.grid.stride[axis];
  return pixels * map.channels;
}

// 1 / ‖patch‖ of every pixel, by padded index; 1 in the border.
template <typename T>
Buffer<T> inverse_norms(const PaddedMap<T>& map, const Patch& patch) {
  const Runs runs = box_runs<T>(patch.size, map.channels, map.grid, map.grid);
  const int64_t corner = patch_corner(map, patch), width = map.grid.shape.size[2];
  Buffer<T> inverse(map.grid.padded.count(), T(1));
  for_ranges(map.grid.shape.rows(), kRowsPerTask, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t start = map.grid.row_start(row);
      for (int64_t pixel = start; pixel < start + width; ++pixel) {
        const T* values = map.pixel(pixel) - corner;
        const T square = -sum_runs<Similarity::dot, false>(values, values, runs, T(0));
        inverse[pixel] = 1 / std::sqrt(std::max(square, T(kNormEpsilon * kNormEpsilon)));
      }
    }
  });
  return inverse;
}

// Everything that costs are computed from. Queries and keys are given by their padded indices.
template <typename T>
class Comparison {
 public:
  Comparison(const Problem<T>& problem, PaddedMap<T> query_map, PaddedMap<T> key_map)
      : query(std::move(query_map)),
        key(std::move(key_map)),
        patch(box_runs<T>(problem.patch.size, problem.channels, query.grid, key.grid)),
        query_corner_(patch_corner(query, problem.patch)),
        key_corner_(patch_corner(key, problem.patch)) {
    if (problem.similarity == Similarity::cosine) inverse_norm_ = inverse_norms(key, problem.patch);
  }

  const PaddedMap<T> query, key;
  const Runs patch;

  // The first value of a patch.
  const T* query_patch(int64_t query_index) const { return query.pixel(query_index) - query_corner_; }
  const T* key_patch(int64_t key_index) const { return key.pixel(key_index) - key_corner_; }

  template <Similarity S>
  T cost(int64_t query_index, int64_t key_index) const {
    return normalized<S>(sum_runs<S, false>(query_patch(query_index), key_patch(key_index), patch, T(0)), key_index);
  }

  // The cost if it is below `limit`; otherwise any value that is not below.
  template <Similarity S>
  T cost_below(T limit, int64_t query_index, int64_t key_index) const {
    return normalized<S>(sum_runs<S, true>(query_patch(query_index), key_patch(key_index), patch, limit), key_index);
  }

  // From the sum over a patch to the cost, and back.
  template <Similarity S>
  T normalized(T sum, int64_t key_index) const {
    if constexpr (S == Similarity::cosine)
      return sum * inverse_norm_[key_index];
    else
      return sum;
  }
  template <Similarity S>
  T unnormalized(T cost, int64_t key_index) const {
    if constexpr (S == Similarity::cosine) cost /= inverse_norm_[key_index];
    return cost;
  }

  // Loads a key's patch into the cache.
  void prefetch(int64_t key_index) const {
    const T* values = key_patch(key_index);
    for (int64_t run = 0; run < patch.count; ++run)
      for (int64_t i = 0; i < patch.vectors + (patch.tail > 0); ++i)
        __builtin_prefetch(values + patch.offsets[2 * run + 1] + i * kWidth<T>);
  }

 private:
  const int64_t query_corner_, key_corner_;  // see patch_corner()
  Buffer<T> inverse_norm_;                   // of the key's patches, by padded index; "cosine" only
};

}  // namespace psal::PSAL_TARGET
PSAL_END_TARGET

#endif  // per-target include guard
