// Principal component analysis of small matrices.

#if defined(PSAL_KERNELS_PRINCIPAL_DIRECTIONS_INL_H_) == defined(PSAL_TARGET_TOGGLE)
#ifdef PSAL_KERNELS_PRINCIPAL_DIRECTIONS_INL_H_
#undef PSAL_KERNELS_PRINCIPAL_DIRECTIONS_INL_H_
#else
#define PSAL_KERNELS_PRINCIPAL_DIRECTIONS_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "../simd/target.h"
#include "buffer-inl.h"
#include "random-inl.h"
#include "tuning.h"

PSAL_BEGIN_TARGET
namespace psal::PSAL_TARGET {

inline double squared_norm(const double* x, int64_t size) {
  double square = 0;
  for (int64_t i = 0; i < size; ++i) square += x[i] * x[i];
  return square;
}

// Orthonormalizes rows one after the other (Gram–Schmidt). A row that depends on the earlier ones becomes zero.
inline void orthonormalize(Buffer<double>& rows, int64_t count, int64_t size) {
  for (int64_t r = 0; r < count; ++r) {
    double* row = rows.get() + r * size;
    const double before = squared_norm(row, size);
    for (int64_t s = 0; s < r; ++s) {
      const double* other = rows.get() + s * size;
      double along = 0;
      for (int64_t i = 0; i < size; ++i) along += row[i] * other[i];
      for (int64_t i = 0; i < size; ++i) row[i] -= along * other[i];
    }
    const double square = squared_norm(row, size);
    const bool is_rounding_error = !(square > 1e-18 * before && square < 1e300);
    const double scale = is_rounding_error ? 0 : 1 / std::sqrt(square);
    for (int64_t i = 0; i < size; ++i) row[i] *= scale;
  }
}

// The `count` leading eigenvectors of a symmetric matrix [size][size], as rows, by orthogonal iteration. The start is
// pseudorandom but fixed, so that results are the same for every seed.
inline Buffer<float> principal_directions(const Buffer<double>& matrix, int64_t size, int64_t count) {
  Buffer<double> rows(count * size), product(size);
  for (int64_t i = 0; i < count * size; ++i) rows[i] = double(mix(uint32_t(i))) / 4294967296.0 - 0.5;
  orthonormalize(rows, count, size);
  for (int iteration = 0; iteration < kPcaIterations; ++iteration) {
    for (int64_t r = 0; r < count; ++r) {
      double* row = rows.get() + r * size;
      std::fill_n(product.get(), size, 0.0);
      for (int64_t i = 0; i < size; ++i)
        for (int64_t j = 0; j < size; ++j) product[j] += row[i] * matrix[i * size + j];
      std::copy_n(product.get(), size, row);
    }
    orthonormalize(rows, count, size);
  }
  Buffer<float> directions(count * size);
  for (int64_t i = 0; i < count * size; ++i) directions[i] = float(rows[i]);
  return directions;
}

// Σ x xᵀ over samples [count][size]; with `centered`, of their deviations from the mean.
inline Buffer<double> second_moments(const Buffer<float>& samples, int64_t count, int64_t size, bool centered) {
  Buffer<double> matrix(size * size, 0.0), mean(size, 0.0);
  Buffer<float> sample(size);
  for (int64_t s = 0; s < count && centered; ++s)
    for (int64_t i = 0; i < size; ++i) mean[i] += samples[s * size + i] / double(count);
  for (int64_t s = 0; s < count; ++s) {
    for (int64_t i = 0; i < size; ++i) sample[i] = float(samples[s * size + i] - mean[i]);
    for (int64_t i = 0; i < size; ++i) {
      const double x = sample[i];
      for (int64_t j = 0; j < size; ++j) matrix[i * size + j] += x * sample[j];
    }
  }
  return matrix;
}

}  // namespace psal::PSAL_TARGET
PSAL_END_TARGET

#endif  // per-target include guard
