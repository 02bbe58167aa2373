// Screened Poisson equation on a masked pixel grid: conjugate gradients, preconditioned by a V-cycle of multigrid.
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

#include "../simd/target.h"
#include "arguments.h"
#include "buffer-inl.h"
#include "cell_grid-inl.h"
#include "galerkin-inl.h"
#include "grid_operator-inl.h"
#include "parallel-inl.h"
#include "v_cycle-inl.h"

PSAL_BEGIN_TARGET
namespace psal::PSAL_TARGET {

constexpr int kMaxSolverIterations = 100;  // 3 to 7 are usual
constexpr int64_t kValuesPerTask = 65536;  // of a vector operation

template <typename T>
class PoissonSolver {
 public:
  explicit PoissonSolver(const PoissonArguments<T>& arguments)
      : arguments_(arguments),
        channels_(arguments.channels),
        cycle_(GridBuilder<T>(arguments).levels(), arguments.channels) {}

  void solve() {
    const int64_t size = channels_ * cycle_.finest().grid.cells;
    Buffer<T> x(size, T(0)), direction(size, T(0));
    read_right_side();
    double power = std::numeric_limits<double>::infinity();
    for (int i = 0;; ++i) {
      cycle_.run();  // the correction is close to the whole error
      const double previous = std::exchange(power, cycle_.power());
      // A power that is not finite, as after a right side that is not, stays so.
      if (cycle_.largest_correction() < arguments_.tolerance || !std::isfinite(power) || i == kMaxSolverIterations)
        break;
      update_direction(direction, T(power / previous));
      update(direction, T(power / energy(direction)), x);
    }
    write(x);
  }

 private:
  // direction = correction + factor · direction
  void update_direction(Buffer<T>& direction, T factor) const {
    const T* correction = cycle_.finest().correction.get();
    for_ranges(direction.size(), kValuesPerTask, [&](int64_t begin, int64_t end) {
      T* to = direction.get();
      for (int64_t i = begin; i < end; ++i) to[i] = correction[i] + factor * to[i];
    });
  }

  // The product of a direction and its image.
  double energy(const Buffer<T>& direction) {
    return multiply(direction, [](const T* values, const T* image, int64_t, const CellWeights<T>&, int64_t size) {
      return dot(values, image, size);
    });
  }

  // x += step · direction, residual −= step · A direction
  void update(const Buffer<T>& direction, T step, Buffer<T>& x) {
    T* residual = cycle_.finest().residual.get();
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
  // finest operator. Returns the sum of what it returns.
  template <typename Use>
  double multiply(const Buffer<T>& map, const Use& use) const {
    const CellGrid& grid = cycle_.finest().grid;
    std::vector<double> sums(grid.strips());
    const auto copy = [&](int64_t, const Run& run, int64_t c, const CellWeights<T>&, T* to) {
      std::copy_n(map.get() + c * grid.cells + run.cell, run.size(), to);
    };
    for_products(
        cycle_.finest(), channels_, [&] { return copy; },
        [&](int64_t strip, const Run& run, int64_t c, const CellWeights<T>& weights, const T* values, const T* image) {
          sums[strip] += use(values, image, c * grid.cells + run.cell, weights, run.size());
        });
    return sum_of(sums);
  }

  // residual = −right side, 0 at known pixels
  void read_right_side() {
    Level<T>& finest = cycle_.finest();
    for_pixels([&](int64_t pixel, int64_t cell, int64_t c, int64_t size) {
      negate_unknown(arguments_.right_side + c * arguments_.height * arguments_.width + pixel,
                     arguments_.unknown + pixel, size, finest.residual.get() + c * finest.grid.cells + cell);
    });
  }

  static void negate_unknown(const T* values, const bool* unknown, int64_t size, T* __restrict out) {
    for (int64_t i = 0; i < size; ++i) out[i] = unknown[i] ? -values[i] : T(0);
  }

  // x + the last correction
  void write(const Buffer<T>& x) const {
    const Level<T>& level = cycle_.finest();
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
    const CellGrid& grid = cycle_.finest().grid;
    grid.for_strips([&](int64_t, int64_t top, int64_t bottom) {
      for (int64_t y = top; y < bottom; ++y)
        grid.for_runs(y, [&](const Run& run) {
          for (int64_t c = 0; c < channels_; ++c) visit(y * grid.width + run.begin, run.cell, c, run.size());
        });
    });
  }

  const PoissonArguments<T>& arguments_;
  const int64_t channels_;
  VCycle<T> cycle_;
};

template <typename T>
void solve_poisson(const PoissonArguments<T>& arguments) {
  PoissonSolver<T>(arguments).solve();
}

}  // namespace psal::PSAL_TARGET
PSAL_END_TARGET

#endif  // per-target include guard
