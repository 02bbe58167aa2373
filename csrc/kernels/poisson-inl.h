// Screened Poisson equation on a masked pixel grid: conjugate gradients, preconditioned by a multigrid V-cycle.
//
// Conjugate gradients keep the convergence fast where a V-cycle alone is weak. All channels are one block-diagonal
// system. See "The Poisson solver" in csrc/README.md.

#if defined(PSAL_KERNELS_POISSON_INL_H_) == defined(PSAL_TARGET_TOGGLE)
#ifdef PSAL_KERNELS_POISSON_INL_H_
#undef PSAL_KERNELS_POISSON_INL_H_
#else
#define PSAL_KERNELS_POISSON_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "../simd/lanes-inl.h"
#include "../simd/target.h"
#include "arguments.h"
#include "buffer-inl.h"
#include "cell_grid-inl.h"
#include "galerkin-inl.h"
#include "grid_operator-inl.h"
#include "parallel-inl.h"

PSAL_BEGIN_TARGET
namespace psal::PSAL_TARGET {

constexpr int kMaxSolverIterations = 100;  // 3 to 7 are usual
constexpr int kCoarsestSmoothings = 20;
constexpr int64_t kValuesPerTask = 65536;  // of a vector operation
constexpr int64_t kFloatSumVectors = 64;   // terms that a lane adds up before it goes to double precision

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

template <typename T>
class PoissonSolver {
 public:
  explicit PoissonSolver(const PoissonArguments<T>& arguments)
      : arguments_(arguments), channels_(arguments.channels), levels_(GridBuilder<T>(arguments).levels()) {
    for (Level<T>& level : levels_) {
      level.residual = Buffer<T>(channels_ * level.grid.cells);
      level.correction = Buffer<T>(channels_ * level.grid.cells);
    }
  }

  void solve() {
    const Level<T>& finest = levels_.front();
    const int64_t size = channels_ * finest.grid.cells;
    Buffer<T> x(size, T(0)), direction(size, T(0));
    read_right_side();
    double power = std::numeric_limits<double>::infinity();
    for (int i = 0; i < kMaxSolverIterations; ++i) {
      v_cycle(0);  // the correction is close to the whole error
      const double previous = std::exchange(power, total());
      // Without a number, as for a right side that is not finite, no iteration would change anything.
      if (largest_correction_ < arguments_.tolerance || !std::isfinite(power)) break;
      update_direction(direction, T(power / previous));
      const T step = T(power / energy(direction));
      update(direction, step, x);
    }
    write(x);
  }

 private:
  // Approximate solution for a level's residual; a symmetric positive definite linear map of it.
  void v_cycle(size_t l) {
    Level<T>& level = levels_[l];
    if (l + 1 == levels_.size()) return smooth_coarsest(level);
    restrict_residual(level, levels_[l + 1]);
    v_cycle(l + 1);
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
          interpolated.move_to(y, [&](const Run& from, int64_t plane, T* out) {
            std::copy_n(coarse.correction.get() + plane * coarse.grid.cells + from.cell, from.size(), out);
          });
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
    partial_.assign(grid.strips(), 0.0);
    largest_.assign(grid.strips(), T(0));
    grid.for_strips([&](int64_t strip, int64_t top, int64_t bottom) {
      RowWindow<T> window(level, channels_);
      Buffer<T> image(grid.width);
      auto fill = make_fill();
      const auto load = [&](int64_t y) {
        window.load(
            y, [&](const Run& run, int64_t c, const CellWeights<T>& weights, T* to) { fill(y, run, c, weights, to); });
      };
      load(top - 1);
      load(top);
      double power = 0;
      T largest = 0;
      for (int64_t y = top; y < bottom; ++y) {
        load(y + 1);
        grid.for_runs(y, [&](const Run& run) {
          for (int64_t c = 0; c < channels_; ++c) {
            window.multiply(y, c, run, image.get());
            const int64_t first = c * grid.cells + run.cell;
            const T* residual = level.residual.get() + first;
            relax(window.values_of(y, c, run), window.weights_of(y, run).step, residual, image.get(), run.size(),
                  out + first);
            if (level.is_finest()) {
              power += dot(residual, out + first, run.size());
              largest = std::max(largest, largest_magnitude(out + first, run.size()));
            }
          }
        });
      }
      partial_[strip] = power;
      largest_[strip] = largest;
    });
    if (level.is_finest()) largest_correction_ = *std::max_element(largest_.begin(), largest_.end());
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

  double total() const {
    double total = 0;
    for (const double part : partial_) total += part;
    return total;
  }

  // direction = correction + factor · direction
  void update_direction(Buffer<T>& direction, T factor) const {
    const T* correction = levels_.front().correction.get();
    for_ranges(direction.size(), kValuesPerTask, [&](int64_t begin, int64_t end) {
      T* to = direction.get();
      for (int64_t i = begin; i < end; ++i) to[i] = correction[i] + factor * to[i];
    });
  }

  // The product of a direction and its image.
  double energy(const Buffer<T>& direction) {
    multiply(direction, [](const T* values, const T* image, int64_t, const CellWeights<T>&, int64_t size) {
      return dot(values, image, size);
    });
    return total();
  }

  // x += step · direction, residual −= step · A direction
  void update(const Buffer<T>& direction, T step, Buffer<T>& x) {
    T* residual = levels_.front().residual.get();
    multiply(direction,
             [&](const T* values, const T* image, int64_t first, const CellWeights<T>& weights, int64_t size) {
               add(values, step, size, x.get() + first);
               subtract_unknown(image, step, weights.step, size, residual + first);
               return 0.0;
             });
  }

  static void add(const T* values, T factor, int64_t size, T* __restrict to) {
    for (int64_t i = 0; i < size; ++i) to[i] += factor * values[i];
  }

  static void subtract_unknown(const T* image, T factor, const T* step, int64_t size, T* __restrict to) {
    for (int64_t i = 0; i < size; ++i) to[i] -= step[i] > 0 ? factor * image[i] : T(0);
  }

  // Calls use(values, image, first cell, weights, size) for all runs and channels of a map and its product with the
  // finest operator; adds up what it returns.
  template <typename Use>
  void multiply(const Buffer<T>& map, const Use& use) {
    const Level<T>& level = levels_.front();
    const CellGrid& grid = level.grid;
    partial_.assign(grid.strips(), 0.0);
    grid.for_strips([&](int64_t strip, int64_t top, int64_t bottom) {
      RowWindow<T> window(level, channels_);
      Buffer<T> image(grid.width);
      const auto fill = [&](const Run& run, int64_t c, const CellWeights<T>&, T* to) {
        std::copy_n(map.get() + c * grid.cells + run.cell, run.size(), to);
      };
      window.load(top - 1, fill);
      window.load(top, fill);
      double sum = 0;
      for (int64_t y = top; y < bottom; ++y) {
        window.load(y + 1, fill);
        grid.for_runs(y, [&](const Run& run) {
          for (int64_t c = 0; c < channels_; ++c) {
            window.multiply(y, c, run, image.get());
            sum += use(window.values_of(y, c, run), image.get(), c * grid.cells + run.cell, window.weights_of(y, run),
                       run.size());
          }
        });
      }
      partial_[strip] = sum;
    });
  }

  // residual = −right side, 0 at known pixels
  void read_right_side() {
    for_pixels([&](int64_t pixel, int64_t cell, int64_t c, int64_t size) {
      negate_unknown(arguments_.right_side + c * arguments_.height * arguments_.width + pixel,
                     arguments_.unknown + pixel, size,
                     levels_.front().residual.get() + c * levels_.front().grid.cells + cell);
    });
  }

  static void negate_unknown(const T* values, const bool* unknown, int64_t size, T* __restrict out) {
    for (int64_t i = 0; i < size; ++i) out[i] = unknown[i] ? -values[i] : T(0);
  }

  // x + the last correction
  void write(const Buffer<T>& x) const {
    const Level<T>& level = levels_.front();
    for_pixels([&](int64_t pixel, int64_t cell, int64_t c, int64_t size) {
      const int64_t first = c * level.grid.cells + cell;
      add_unknown(x.get() + first, level.correction.get() + first, arguments_.unknown + pixel, size,
                  arguments_.out + c * arguments_.height * arguments_.width + pixel);
    });
  }

  static void add_unknown(const T* x, const T* correction, const bool* unknown, int64_t size, T* __restrict out) {
    for (int64_t i = 0; i < size; ++i) out[i] = unknown[i] ? x[i] + correction[i] : T(0);
  }

  // Calls visit(index of the first pixel, its cell, channel, size) for all runs.
  template <typename Visit>
  void for_pixels(const Visit& visit) const {
    const CellGrid& grid = levels_.front().grid;
    grid.for_strips([&](int64_t, int64_t top, int64_t bottom) {
      for (int64_t y = top; y < bottom; ++y)
        grid.for_runs(y, [&](const Run& run) {
          for (int64_t c = 0; c < channels_; ++c) visit(y * grid.width + run.begin, run.cell, c, run.size());
        });
    });
  }

  const PoissonArguments<T>& arguments_;
  const int64_t channels_;
  std::vector<Level<T>> levels_;  // finest first
  std::vector<double> partial_;   // sums of each strip
  std::vector<T> largest_;        // correction of each strip
  T largest_correction_ = 0;
};

template <typename T>
void solve_poisson(const PoissonArguments<T>& arguments) {
  PoissonSolver<T>(arguments).solve();
}

}  // namespace psal::PSAL_TARGET
PSAL_END_TARGET

#endif  // per-target include guard
