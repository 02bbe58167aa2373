// The screened Laplacian on one grid of the multigrid hierarchy: weights of its stencil, and products with maps.
//
// On the finest grid all couplings are −1, and a byte per cell says the rest. The operators of coarser grids couple the
// 8 neighbors by different weights; half of them are stored, since the operator is symmetric.

#if defined(PSAL_KERNELS_GRID_OPERATOR_INL_H_) == defined(PSAL_TARGET_TOGGLE)
#ifdef PSAL_KERNELS_GRID_OPERATOR_INL_H_
#undef PSAL_KERNELS_GRID_OPERATOR_INL_H_
#else
#define PSAL_KERNELS_GRID_OPERATOR_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "../simd/target.h"
#include "buffer-inl.h"
#include "cell_grid-inl.h"

PSAL_BEGIN_TARGET
namespace psal::PSAL_TARGET {

constexpr double kDamping = 0.8;        // of Jacobi smoothing; the textbook value for the five-point Laplacian
constexpr double kMaxEigenvalue = 1.9;  // of the smoothed operator, at most; from 2 on smoothing would amplify

// Planes of a stencil: the coupling of a cell to itself, and to the neighbors that follow it in the order of rows.
enum StencilPlane { kCenter, kEast, kSouthWest, kSouth, kSouthEast, kStencilPlanes };

// What smoothing and interpolation need of a row's cells, in their order.
template <typename T>
struct CellWeights {
  const T* center;  // diagonal of the operator
  const T* step;    // damped inverse of it; 0 at known pixels
  const T* share;   // normalizes the weights of interpolation from the next coarser grid; 0 at known pixels
};

// The finest grid's cells, as one of a few kinds.
constexpr int kMaxKinds = 128;
constexpr int kKnownKind = 0;
inline uint8_t kind_of(int degree, int unknown_neighbors, int quarters) {
  return uint8_t(1 + (degree * 5 + unknown_neighbors) * 5 + quarters);
}

// Damped Jacobi step, shortened where Gershgorin's bound on the eigenvalues asks for it.
template <typename T>
inline T smoothing_step(T diagonal, T bound) {
  const T inverse = std::max(diagonal / T(kDamping), bound / T(kMaxEigenvalue));
  return inverse > 0 ? 1 / inverse : T(0);
}

template <typename T>
struct Level {
  CellGrid grid;
  Buffer<uint8_t> kind;            // [cells] of the finest grid
  T kind_weights[3][kMaxKinds];    // center, step and share of each kind
  Buffer<T> stencil;               // [5, cells] of coarser grids
  Buffer<T> step, share;           // the same
  Buffer<T> residual, correction;  // [C, cells], of the V-cycle

  explicit Level(CellGrid cell_grid) : grid(std::move(cell_grid)) {}
  bool is_finest() const { return kind.size() > 0; }
  const T* stencil_plane(int plane) const { return stencil.get() + plane * grid.cells; }
};

// Three successive rows of a map on a level, with what it takes to multiply the middle one by the operator.
template <typename T>
class RowWindow {
 public:
  RowWindow(const Level<T>& level, int64_t channels)
      : level_(level), slots_{Slot(level, channels), Slot(level, channels), Slot(level, channels)} {}

  // Loads a row, which may lie outside; the row three before it is lost. fill(run, c, weights, to) writes values.
  template <typename Fill>
  void load(int64_t y, const Fill& fill) {
    Slot& slot = slot_of(y);
    slot.load_weights(level_, y);
    slot.values.load(y, [&](const Run& run, int64_t c, T* to) { fill(run, c, slot.weights_of(run), to); });
  }

  CellWeights<T> weights_of(int64_t y, const Run& run) const { return slot_of(y).weights_of(run); }
  const T* values_of(int64_t y, int64_t c, const Run& run) const { return slot_of(y).values.plane(c) + run.begin; }

  // Writes the product of the operator and the map for a run of row y. Rows y − 1 to y + 1 must be loaded.
  void multiply(int64_t y, int64_t c, const Run& run, T* out) const {
    const Slot &before = slot_of(y - 1), &slot = slot_of(y);
    const T *above = before.values.plane(c) + run.begin, *x = slot.values.plane(c) + run.begin,
            *below = slot_of(y + 1).values.plane(c) + run.begin;
    if (level_.is_finest()) return multiply_finest(slot.weights_of(run).center, above, x, below, run.size(), out);
    const auto plane = [&](int p) { return level_.stencil_plane(p) + run.cell; };
    multiply_centers(plane(kCenter), plane(kEast), x, run.size(), out);
    add_below(plane(kSouthWest), plane(kSouth), plane(kSouthEast), below, run.size(), out);
    const auto plane_above = [&](int p) { return before.couplings.plane(p) + run.begin; };
    add_above(plane_above(0), plane_above(1), plane_above(2), above, run.size(), out);
  }

 private:
  struct Slot {
    ExpandedRow<T> values;
    ExpandedRow<T> couplings;  // to the row below; of coarser grids
    Buffer<T> weights;         // of the finest grid: [3, cells of the row]
    CellWeights<T> row = {};   // of the row's first cell
    int64_t first_cell = 0;

    Slot(const Level<T>& level, int64_t channels)
        : values(level.grid, channels),
          couplings(level.grid, level.is_finest() ? 0 : 3),
          weights(level.is_finest() ? 3 * level.grid.width : 0) {}

    void load_weights(const Level<T>& level, int64_t y) {
      if (!level.is_finest()) couplings.load(y, level.stencil_plane(kSouthWest));
      if (level.grid.is_empty(y)) return;
      const Run &first = *level.grid.runs_begin(y), &last = level.grid.runs_end(y)[-1];
      first_cell = first.cell;
      if (!level.is_finest()) {
        row = {.center = level.stencil_plane(kCenter) + first_cell,
               .step = level.step.get() + first_cell,
               .share = level.share.get() + first_cell};
        return;
      }
      const int64_t count = last.cell + last.size() - first_cell;
      T* planes[3];
      for (int p = 0; p < 3; ++p) {
        planes[p] = weights.get() + p * level.grid.width;
        look_up(level.kind_weights[p], level.kind.get() + first_cell, count, planes[p]);
      }
      row = {.center = planes[0], .step = planes[1], .share = planes[2]};
    }

    CellWeights<T> weights_of(const Run& run) const {
      const int64_t i = run.cell - first_cell;
      return {.center = row.center + i, .step = row.step + i, .share = row.share + i};
    }
  };

  static void look_up(const T* weights, const uint8_t* kind, int64_t size, T* __restrict out) {
    for (int64_t i = 0; i < size; ++i) out[i] = weights[kind[i]];
  }

  static void multiply_finest(const T* center, const T* above, const T* x, const T* below, int64_t size,
                              T* __restrict out) {
    for (int64_t i = 0; i < size; ++i) out[i] = center[i] * x[i] - ((x[i - 1] + x[i + 1]) + (above[i] + below[i]));
  }

  static void multiply_centers(const T* center, const T* east, const T* x, int64_t size, T* __restrict out) {
    out[0] = center[0] * x[0] + east[0] * x[1];
    for (int64_t i = 1; i < size; ++i) out[i] = center[i] * x[i] + (east[i - 1] * x[i - 1] + east[i] * x[i + 1]);
  }

  static void add_below(const T* west, const T* south, const T* east, const T* below, int64_t size, T* __restrict out) {
    for (int64_t i = 0; i < size; ++i)
      out[i] += south[i] * below[i] + (west[i] * below[i - 1] + east[i] * below[i + 1]);
  }

  static void add_above(const T* west, const T* south, const T* east, const T* above, int64_t size, T* __restrict out) {
    for (int64_t i = 0; i < size; ++i)
      out[i] += south[i] * above[i] + (west[i + 1] * above[i + 1] + east[i - 1] * above[i - 1]);
  }

  Slot& slot_of(int64_t y) { return slots_[(y + 3) % 3]; }
  const Slot& slot_of(int64_t y) const { return slots_[(y + 3) % 3]; }

  const Level<T>& level_;
  Slot slots_[3];
};

// Calls use(strip, run, c, weights, values, image) for all runs and channels of a map and its product with the
// operator. The map consists of rows from a filler fill(y, run, c, weights, to) that make_fill() makes for each strip.
template <typename T, typename MakeFill, typename Use>
void for_products(const Level<T>& level, int64_t channels, const MakeFill& make_fill, const Use& use) {
  level.grid.for_strips([&](int64_t strip, int64_t top, int64_t bottom) {
    RowWindow<T> window(level, channels);
    Buffer<T> image(level.grid.width);
    auto fill = make_fill();
    const auto load = [&](int64_t y) {
      window.load(
          y, [&](const Run& run, int64_t c, const CellWeights<T>& weights, T* to) { fill(y, run, c, weights, to); });
    };
    load(top - 1);
    load(top);
    for (int64_t y = top; y < bottom; ++y) {
      load(y + 1);
      level.grid.for_runs(y, [&](const Run& run) {
        for (int64_t c = 0; c < channels; ++c) {
          window.multiply(y, c, run, image.get());
          use(strip, run, c, window.weights_of(y, run), window.values_of(y, c, run), image.get());
        }
      });
    }
  });
}

}  // namespace psal::PSAL_TARGET
PSAL_END_TARGET

#endif  // per-target include guard
