// A test that rules out most keys with one cache line of each: the distance of two descriptors is never above that of
// their patches ("l2" only).

#if defined(PSAL_KERNELS_LOWER_BOUND_INL_H_) == defined(PSAL_TARGET_TOGGLE)
#ifdef PSAL_KERNELS_LOWER_BOUND_INL_H_
#undef PSAL_KERNELS_LOWER_BOUND_INL_H_
#else
#define PSAL_KERNELS_LOWER_BOUND_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "../simd/lanes-inl.h"
#include "../simd/target.h"
#include "arguments.h"
#include "buffer-inl.h"
#include "comparison-inl.h"
#include "descriptor-inl.h"
#include "padded_map-inl.h"
#include "parallel-inl.h"
#include "tuning.h"

PSAL_BEGIN_TARGET
namespace psal::PSAL_TARGET {

template <typename T>
class LowerBound {
 public:
  static constexpr int kGroup = 4;  // keys that are tested at once

  LowerBound(const Comparison<T>& comparison, const Problem<T>& problem) {
    constexpr double kMaxMagnitude = 1e12;  // beyond it, squares may overflow
    if (problem.similarity != Similarity::l2 || comparison.patch.total_vectors() <= kLowerBoundMinVectors) return;
    const double magnitude = largest_magnitude(comparison.query) + largest_magnitude(comparison.key);
    if (!(magnitude < kMaxMagnitude)) return;
    const Descriptors<T> descriptors(comparison.key, problem.patch, Similarity::l2, Buffer<T>());
    query_ = describe(descriptors, comparison.query);
    key_ = describe(descriptors, comparison.key);
    // Rounding may increase a distance by so much, given the terms per component and the values per patch.
    const double terms = double(problem.channels + descriptors.max_terms());
    const double values = double(problem.patch.count() * problem.channels);
    margin_ = float(4 * std::numeric_limits<float>::epsilon() * terms * std::sqrt(values) * magnitude);
  }

  // Bit i is set if the cost of key i may be below `limit`. Queries and keys are padded indices.
  uint32_t may_be_below(T limit, int64_t query, const int32_t (&key)[kGroup]) const {
    if (!query_.size()) return ~0u;
    const Lanes<float> q = load(query_.get() + query * kDescriptor);
    Lanes<float> square[kGroup];
    for (int i = 0; i < kGroup; ++i) {
      const Lanes<float> difference = q - load(key_.get() + int64_t(key[i]) * kDescriptor);
      square[i] = difference * difference;
    }
    const float bound = std::sqrt(float(limit)) + margin_;
    return sums_below(square, bound * bound);
  }

 private:
  // Descriptors of all pixels, by padded index.
  static Buffer<float> describe(const Descriptors<T>& descriptors, const PaddedMap<T>& map) {
    const int64_t width = map.grid.shape.size[2];
    const Buffer<T> no_norms;
    Buffer<float> all(map.grid.padded.count() * kDescriptor);
    for_ranges(map.grid.shape.rows(), kDescriptorRowsPerTask, [&](int64_t begin, int64_t end) {
      typename Descriptors<T>::Scratch scratch;
      Buffer<float> planes(kDescriptor * pitch(width));
      for (int64_t row = begin; row < end; ++row) {
        descriptors.row({.map = map, .inverse_norm = no_norms, .is_key = true}, {.row = row, .begin = 0, .end = width},
                        scratch, planes.get());
        float* to = all.get() + map.grid.row_start(row) * kDescriptor;
        for (int64_t x = 0; x < width; ++x)
          for (int d = 0; d < kDescriptor; ++d) *to++ = planes[d * pitch(width) + x];
      }
    });
    return all;
  }

  // NaNs are skipped: a patch with one has no finite cost, so it needs no bound.
  static double largest_magnitude(const PaddedMap<T>& map) {
    Lanes<T> found{};
    const int64_t count = map.data.size(), whole = count / kWidth<T> * kWidth<T>;
    for (int64_t i = 0; i < whole; i += kWidth<T>) {
      const Lanes<T> x = load(map.data.get() + i);
      found = larger<T>(larger<T>(x, Lanes<T>{} - x), found);
    }
    double result = double(largest<T>(found));
    for (int64_t i = whole; i < count; ++i) result = std::max(result, double(std::abs(map.data[i])));
    return result;
  }

  Buffer<float> query_, key_;  // empty if the test is of no use
  float margin_ = 0;
};

}  // namespace psal::PSAL_TARGET
PSAL_END_TARGET

#endif  // per-target include guard
