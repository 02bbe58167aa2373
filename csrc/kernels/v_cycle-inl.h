// A V-cycle of multigrid: the preconditioner of the Poisson solver. See "The Poisson solver" in csrc/README.md.

#if defined(PSAL_KERNELS_V_CYCLE_INL_H_) == defined(PSAL_TARGET_TOGGLE)
#ifdef PSAL_KERNELS_V_CYCLE_INL_H_
#undef PSAL_KERNELS_V_CYCLE_INL_H_
#else
#define PSAL_KERNELS_V_CYCLE_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "../simd/lanes-inl.h"
#include "../simd/target.h"
#include "buffer-inl.h"
#include "cell_grid-inl.h"
#include "grid_operator-inl.h"

PSAL_BEGIN_TARGET
namespace psal::PSAL_TARGET {

constexpr int kCoarsestSmoothings = 20;
constexpr int64_t kFloatSumVectors = 64;  // terms that a lane adds up before it goes to double precision

// Sum of products, in an order that depends on the size alone.
template <typename T>
inline double dot(const T* a, const T* b, int64_t size) {
  double total = 0;
  for (int64_t begin = 0; begin < size; begin += kFloatSumVectors * kWidth<T>) {
    const int64_t end = std::min(size, begin + kFloatSumVectors * kWidth<T>);
    Lanes<T> lanes{};
    int64_t i = begin;
    for (; i + kWidth<T> <= end; i += kWidth<T>) lanes += load(a + i) * load(b + i);
    total += double(sum<T>(lanes));
    for (; i < end; ++i) total += double(a[i]) * double(b[i]);
  }
  return total;
}

// Sum in the order of the terms.
inline double sum_of(const std::vector<double>& terms) {
  double total = 0;
  for (const double term : terms) total += term;
  return total;
}

template <typename T>
class VCycle {
 public:
  // Takes the levels, finest first.
  VCycle(std::vector<Level<T>> levels, int64_t channels) : channels_(channels), levels_(std::move(levels)) {
    for (Level<T>& level : levels_) {
      level.residual = Buffer<T>(channels * level.grid.cells);
      level.correction = Buffer<T>(channels * level.grid.cells);
    }
  }

  // Writes the finest level's correction for its residual.
  void run() { cycle(0); }

  Level<T>& finest() { return levels_.front(); }
  const Level<T>& finest() const { return levels_.front(); }

  // Of the last run, on the finest level: the product of residual and correction, and the largest magnitude of the
  // latter, in which NaNs are skipped.
  double power() const { return power_; }
  T largest_correction() const { return largest_; }

 private:
  // Approximate solution for a level's residual; a symmetric positive definite linear map of it.
  void cycle(size_t l) {
    Level<T>& level = levels_[l];
    if (l + 1 == levels_.size()) return smooth_coarsest(level);
    restrict_residual(level, levels_[l + 1]);
    cycle(l + 1);
    correct(level, levels_[l + 1]);
  }

  // Smooths once from 0, and restricts what remains of the residual.
  void restrict_residual(const Level<T>& fine, Level<T>& coarse) const {
    const CellGrid& grid = fine.grid;
    grid.for_strips([&](int64_t, int64_t top, int64_t bottom) {
      RowWindow<T> window(fine, channels_);
      ExpandedRow<T> remaining[3] = {{grid, channels_}, {grid, channels_}, {grid, channels_}};
      Buffer<T> image(grid.width), column_sums(2 * coarse.grid.width + 2);
      int64_t loaded = -9, computed = -9;    // rows
      const auto compute = [&](int64_t y) {  // share · (residual − A smoothed)
        for (loaded = std::max(loaded, y - 2); loaded < y + 1;) window.load(++loaded, smoothed_residual(fine));
        computed = y;
        remaining[(y + 3) % 3].load(y, [&](const Run& run, int64_t c, T* to) {
          window.multiply(y, c, run, image.get());
          subtract(fine.residual.get() + c * grid.cells + run.cell, image.get(), window.weights_of(y, run).share,
                   run.size(), to);
        });
      };
      for (int64_t y = top / 2; y < (bottom + 1) / 2; ++y) {
        if (coarse.grid.is_empty(y)) continue;
        for (computed = std::max(computed, 2 * y - 2); computed < 2 * y + 1;) compute(computed + 1);
        coarse.grid.for_runs(y, [&](const Run& run) {
          for (int64_t c = 0; c < channels_; ++c)
            restrict_run(remaining[(2 * y + 2) % 3].plane(c), remaining[2 * y % 3].plane(c),
                         remaining[(2 * y + 1) % 3].plane(c), run, column_sums.get() + 1,
                         coarse.residual.get() + c * coarse.grid.cells + run.cell);
        });
      }
    });
  }

  static void subtract(const T* residual, const T* image, const T* share, int64_t size, T* __restrict out) {
    for (int64_t i = 0; i < size; ++i) out[i] = share[i] * (residual[i] - image[i]);
  }

  // The transposed interpolation: column sums of three fine rows, then sums of three columns.
  static void restrict_run(const T* before, const T* middle, const T* after, const Run& run, T* __restrict column_sums,
                           T* __restrict out) {
    for (int64_t x = 2 * run.begin - 1; x < 2 * run.end; ++x)
      column_sums[x] = middle[x] + T(0.5) * (before[x] + after[x]);
    const T* sums = column_sums + 2 * run.begin;
    for (int64_t i = 0; i < run.size(); ++i) out[i] = sums[2 * i] + T(0.5) * (sums[2 * i - 1] + sums[2 * i + 1]);
  }

  // A filler of rows with the result of one smoothing step from 0.
  auto smoothed_residual(const Level<T>& level) const {
    return [&level](const Run& run, int64_t c, const CellWeights<T>& weights, T* to) {
      scale(level.residual.get() + c * level.grid.cells + run.cell, weights.step, run.size(), to);
    };
  }

  static void scale(const T* residual, const T* step, int64_t size, T* __restrict out) {
    for (int64_t i = 0; i < size; ++i) out[i] = step[i] * residual[i];
  }

  // Adds the coarser level's correction to what one smoothing step gave, and smooths again.
  void correct(Level<T>& fine, const Level<T>& coarse) {
    smooth(fine, fine.correction.get(), [&] {
      return [this, &fine, &coarse, interpolated = InterpolatedRow<T>(coarse.grid, channels_),
              line = Buffer<T>(fine.grid.width + 2 * kRowBorder),
              row = int64_t(-1)](int64_t y, const Run& run, int64_t c, const CellWeights<T>& weights, T* to) mutable {
        if (row != y) {
          interpolated.move_to(y, coarse.correction.get());
          row = y;
        }
        T* values = line.get() + kRowBorder;
        interpolated.write(c, run.begin, run.end, values);
        add_interpolated(fine.residual.get() + c * fine.grid.cells + run.cell, weights.step, values + run.begin,
                         weights.share, run.size(), to);
      };
    });
  }

  static void add_interpolated(const T* residual, const T* step, const T* values, const T* share, int64_t size,
                               T* __restrict out) {
    for (int64_t i = 0; i < size; ++i) out[i] = step[i] * residual[i] + share[i] * values[i];
  }

  void smooth_coarsest(Level<T>& level) {
    smooth(level, level.correction.get(), [&] {
      return [fill = smoothed_residual(level)](int64_t, const Run& run, int64_t c, const CellWeights<T>& weights,
                                               T* to) { fill(run, c, weights, to); };
    });
    Buffer<T> before(level.correction.size());
    for (int i = 1; i < kCoarsestSmoothings; ++i) {
      std::swap(before, level.correction);
      smooth(level, level.correction.get(), [&] {
        return [&](int64_t, const Run& run, int64_t c, const CellWeights<T>&, T* to) {
          std::copy_n(before.get() + c * level.grid.cells + run.cell, run.size(), to);
        };
      });
    }
  }

  // Writes x + step · (residual − A x), where x consists of rows from a filler that make_fill() makes for each strip.
  template <typename MakeFill>
  void smooth(const Level<T>& level, T* out, const MakeFill& make_fill) {
    const CellGrid& grid = level.grid;
    std::vector<double> powers(grid.strips());
    std::vector<T> largest(grid.strips());
    for_products(
        level, channels_, make_fill,
        [&](int64_t strip, const Run& run, int64_t c, const CellWeights<T>& weights, const T* x, const T* image) {
          const int64_t first = c * grid.cells + run.cell;
          const T* residual = level.residual.get() + first;
          relax(x, weights.step, residual, image, run.size(), out + first);
          if (!level.is_finest()) return;
          powers[strip] += dot(residual, out + first, run.size());
          largest[strip] = std::max(largest[strip], largest_magnitude(out + first, run.size()));
        });
    if (!level.is_finest()) return;
    power_ = sum_of(powers);
    largest_ = *std::max_element(largest.begin(), largest.end());
  }

  static void relax(const T* x, const T* step, const T* residual, const T* image, int64_t size, T* __restrict out) {
    for (int64_t i = 0; i < size; ++i) out[i] = x[i] + step[i] * (residual[i] - image[i]);
  }

  static T largest_magnitude(const T* values, int64_t size) {
    Lanes<T> high{}, low{};
    int64_t i = 0;
    for (; i + kWidth<T> <= size; i += kWidth<T>) {
      const Lanes<T> x = load(values + i);
      high = larger<T>(x, high);
      low = smaller<T>(x, low);
    }
    T found = std::max(largest<T>(high), largest<T>(low * T(-1)));
    for (; i < size; ++i) found = std::max(found, std::abs(values[i]));
    return found;
  }

  const int64_t channels_;
  std::vector<Level<T>> levels_;  // finest first
  double power_ = 0;
  T largest_ = 0;
};

}  // namespace psal::PSAL_TARGET
PSAL_END_TARGET

#endif  // per-target include guard
