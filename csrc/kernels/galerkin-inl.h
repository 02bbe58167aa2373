// The grids of the multigrid hierarchy. See "The Poisson solver" in csrc/README.md.
//
// Masks have any shape, so coarser grids are not discretized again, which would lose small islands of known pixels.
// Their operators are Galerkin products Pᵀ A P with bilinear interpolation P.

#if defined(PSAL_KERNELS_GALERKIN_INL_H_) == defined(PSAL_TARGET_TOGGLE)
#ifdef PSAL_KERNELS_GALERKIN_INL_H_
#undef PSAL_KERNELS_GALERKIN_INL_H_
#else
#define PSAL_KERNELS_GALERKIN_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "../simd/target.h"
#include "arguments.h"
#include "buffer-inl.h"
#include "cell_grid-inl.h"
#include "grid_operator-inl.h"

PSAL_BEGIN_TARGET
namespace psal::PSAL_TARGET {

constexpr int64_t kMaxCoarsestUnknowns = 16;  // small enough for plain smoothing

template <typename T>
class GridBuilder {
 public:
  explicit GridBuilder(const PoissonArguments<T>& arguments) : arguments_(arguments) {}

  // All levels, finest first.
  std::vector<Level<T>> levels() {
    std::vector<Level<T>> levels;
    levels.emplace_back(grid_of(1));
    for (int64_t step = 2;; step *= 2) {
      const CellGrid& finer = levels.back().grid;
      CellGrid coarse = grid_of(step);
      const bool is_last = finer.unknowns <= kMaxCoarsestUnknowns || coarse.unknowns == 0;
      if (levels.size() == 1) describe_finest(levels.back(), is_last ? nullptr : &coarse);
      if (is_last) return levels;
      if (levels.size() > 1) write_shares(levels.back(), coarse, step / 2);
      levels.push_back(coarsened(levels.back(), std::move(coarse), step));
    }
  }

 private:
  using Row = ExpandedRow<T>;

  CellGrid grid_of(int64_t step) const {
    return CellGrid(arguments_.unknown, arguments_.height, arguments_.width, step);
  }

  bool is_at(const bool* mask, int64_t y, int64_t x) const {
    return y >= 0 && y < arguments_.height && x >= 0 && x < arguments_.width && mask[y * arguments_.width + x];
  }

  // Weights of interpolation to a row that fall on pixels of the domain, by column.
  const T* domain_weights(const CellGrid& coarse, int64_t step, int64_t y, Buffer<T>& scratch) const {
    const int64_t pitch = coarse.width + 2;
    T *above = scratch.get(), *below = above + pitch, *out = below + pitch + kRowBorder;
    const auto read = [&](int64_t row, T* to) {
      for (int64_t x = 0; x < pitch; ++x) to[x] = T(is_at(arguments_.domain, row * step, x * step));
    };
    read(y / 2, above);
    read((y + 1) / 2, below);
    interpolate(above, below, 0, 2 * coarse.width, out);
    return out;
  }

  Buffer<T> domain_scratch(const CellGrid& coarse) const { return Buffer<T>(4 * coarse.width + 4 + 2 * kRowBorder); }

  // Calls use(cell, y, x, weight) for all cells of a grid whose pixels are `step` apart. The weight is the share of
  // interpolation from the next coarser grid, if there is one, that falls on pixels of the domain.
  template <typename Use>
  void for_cells(const CellGrid& grid, int64_t step, const CellGrid* coarse, const Use& use) const {
    grid.for_strips([&](int64_t, int64_t top, int64_t bottom) {
      Buffer<T> scratch = coarse ? domain_scratch(*coarse) : Buffer<T>();
      for (int64_t y = top; y < bottom; ++y) {
        if (grid.is_empty(y)) continue;
        const T* weight = coarse ? domain_weights(*coarse, 2 * step, y, scratch) : nullptr;
        grid.for_runs(y, [&](const Run& run) {
          for (int64_t x = run.begin; x < run.end; ++x) use(run.cell + x - run.begin, y, x, weight ? weight[x] : T(0));
        });
      }
    });
  }

  void describe_finest(Level<T>& level, const CellGrid* coarse) const {
    level.kind = Buffer<uint8_t>(level.grid.cells);
    for_cells(level.grid, 1, coarse,
              [&](int64_t cell, int64_t y, int64_t x, T weight) { level.kind[cell] = kind_at(y, x, weight); });
    for (auto& weights : level.kind_weights) std::fill_n(weights, kMaxKinds, T(0));
    for (int degree = 0; degree <= 4; ++degree)
      for (int neighbors = 0; neighbors <= degree; ++neighbors)
        for (int quarters = 0; quarters <= 4; ++quarters) {
          const int kind = kind_of(degree, neighbors, quarters);
          const T diagonal = T(degree) + arguments_.screening;
          level.kind_weights[0][kind] = diagonal;
          level.kind_weights[1][kind] = smoothing_step(diagonal, diagonal + T(neighbors));
          level.kind_weights[2][kind] = quarters ? T(4) / T(quarters) : T(0);
        }
  }

  uint8_t kind_at(int64_t y, int64_t x, T weight) const {
    const int64_t width = arguments_.width, i = y * width + x;
    if (!arguments_.unknown[i]) return kKnownKind;
    const auto count = [&](const bool* mask) {
      return int(y > 0 && mask[i - width]) + int(x > 0 && mask[i - 1]) + int(x + 1 < width && mask[i + 1]) +
             int(y + 1 < arguments_.height && mask[i + width]);
    };
    return kind_of(count(arguments_.domain), count(arguments_.unknown), int(4 * weight));
  }

  void write_shares(Level<T>& level, const CellGrid& coarse, int64_t step) const {
    for_cells(level.grid, step, &coarse, [&](int64_t cell, int64_t y, int64_t x, T weight) {
      const bool is_used = weight > 0 && is_at(arguments_.unknown, y * step, x * step);
      level.share[cell] = is_used ? 1 / weight : T(0);
    });
  }

  // Pᵀ A P = Bᵀ (D A D) B, where D has the shares and B is plain bilinear interpolation, first along rows, then along
  // columns.
  Level<T> coarsened(const Level<T>& fine, CellGrid grid, int64_t step) const {
    Level<T> level(std::move(grid));
    const int64_t cells = level.grid.cells;
    level.stencil = Buffer<T>(kStencilPlanes * cells);
    level.step = Buffer<T>(cells);
    level.share = Buffer<T>(cells, T(0));
    fine.grid.for_strips([&](int64_t, int64_t top, int64_t bottom) {
      ScaledRows rows(fine);
      Row middle(level.grid, kStencilPlanes), before(level.grid, kStencilPlanes), after(level.grid, kStencilPlanes);
      for (int64_t y = top / 2; y < (bottom + 1) / 2; ++y) {
        if (level.grid.is_empty(y)) continue;
        for (int64_t i = -1; i <= 1; ++i) rows.move_to(2 * y + i);
        level.grid.for_runs(y, [&](const Run& run) {
          coarsen_columns(rows.row(2 * y - 1), run, before);
          coarsen_columns(rows.row(2 * y), run, middle);
          coarsen_columns(rows.row(2 * y + 1), run, after);
          coarsen_rows(before, middle, after, run, level);
        });
      }
    });
    write_steps(level, step);
    return level;
  }

  // Rows of D A D, the last three that were moved to.
  class ScaledRows {
   public:
    explicit ScaledRows(const Level<T>& level)
        : level_(level),
          share_{Row(level.grid, 1), Row(level.grid, 1)},
          scaled_{Row(level.grid, kStencilPlanes), Row(level.grid, kStencilPlanes), Row(level.grid, kStencilPlanes)} {}

    void move_to(int64_t y) {
      if (loaded_[(y + 3) % 3] == y) return;
      loaded_[(y + 3) % 3] = y;
      for (const int64_t row : {y, y + 1}) load_share(row);
      const T *share = share_[(y + 2) % 2].plane(0), *below = share_[(y + 3) % 2].plane(0);
      const Level<T>& level = level_;
      scaled_[(y + 3) % 3].load(y, [&](const Run& run, int64_t plane, T* to) {
        const T *here = share + run.begin, *other = (plane >= kSouthWest ? below : share) + run.begin + shift(plane);
        if (!level.is_finest()) {
          const T* from = level.stencil_plane(int(plane)) + run.cell;
          for (int64_t i = 0; i < run.size(); ++i) to[i] = here[i] * other[i] * from[i];
        } else if (plane == kCenter) {
          for (int64_t i = 0; i < run.size(); ++i)
            to[i] = here[i] * here[i] * level.kind_weights[0][level.kind[run.cell + i]];
        } else if (plane == kEast || plane == kSouth) {
          for (int64_t i = 0; i < run.size(); ++i) to[i] = -here[i] * other[i];
        }
      });
    }

    const Row& row(int64_t y) const { return scaled_[(y + 3) % 3]; }

   private:
    static int64_t shift(int64_t plane) {
      return plane == kEast || plane == kSouthEast ? 1 : plane == kSouthWest ? -1 : 0;
    }

    void load_share(int64_t y) {
      if (share_row_[(y + 2) % 2] == y) return;
      share_row_[(y + 2) % 2] = y;
      const Level<T>& level = level_;
      share_[(y + 2) % 2].load(y, [&](const Run& run, int64_t, T* to) {
        for (int64_t i = 0; i < run.size(); ++i)
          to[i] = level.is_finest() ? level.kind_weights[2][level.kind[run.cell + i]] : level.share[run.cell + i];
      });
    }

    const Level<T>& level_;
    Row share_[2], scaled_[3];
    int64_t share_row_[2] = {-9, -9}, loaded_[3] = {-9, -9, -9};
  };

  // Products with B along a row, for the columns of a run and one more on either side.
  static void coarsen_columns(const Row& fine, const Run& run, Row& coarse) {
    const T *center = fine.plane(kCenter), *east = fine.plane(kEast), *sw = fine.plane(kSouthWest),
            *s = fine.plane(kSouth), *se = fine.plane(kSouthEast);
    const int64_t begin = run.begin - 1, end = run.end + 1;
    coarsen_pair(center, east, begin, end, coarse.plane(kCenter), coarse.plane(kEast));
    T *__restrict out_sw = coarse.plane(kSouthWest), *__restrict out_s = coarse.plane(kSouth),
                 *__restrict out_se = coarse.plane(kSouthEast);
    for (int64_t x = begin; x < end; ++x) {
      const int64_t i = 2 * x;
      out_s[x] = s[i] + T(0.25) * (s[i - 1] + s[i + 1]) + T(0.5) * ((se[i] + sw[i]) + (se[i - 1] + sw[i + 1]));
      out_se[x] = T(0.5) * (se[i] + se[i + 1]) + T(0.25) * s[i + 1];
      out_sw[x] = T(0.5) * (sw[i] + sw[i - 1]) + T(0.25) * s[i - 1];
    }
  }

  static void coarsen_pair(const T* center, const T* east, int64_t begin, int64_t end, T* __restrict out_center,
                           T* __restrict out_east) {
    for (int64_t x = begin; x < end; ++x) {
      const int64_t i = 2 * x;
      out_center[x] = center[i] + T(0.25) * (center[i - 1] + center[i + 1]) + (east[i] + east[i - 1]);
      out_east[x] = T(0.5) * (east[i] + east[i + 1]) + T(0.25) * center[i + 1];
    }
  }

  // The same along columns: the stencil of a coarse run. Couplings to known cells remain: the values there are 0.
  static void coarsen_rows(const Row& before, const Row& middle, const Row& after, const Run& run, Level<T>& level) {
    const auto out = [&](int plane) { return level.stencil.get() + plane * level.grid.cells + run.cell; };
    const auto in = [&](const Row& row, int plane) { return row.plane(plane) + run.begin; };
    coarsen_center(in(before, kCenter), in(middle, kCenter), in(after, kCenter), in(before, kSouth), in(middle, kSouth),
                   run.size(), out(kCenter));
    coarsen_east(in(before, kEast), in(middle, kEast), in(after, kEast), before, middle, run, out(kEast));
    coarsen_below(in(middle, kSouthWest), in(after, kEast) - 1, in(after, kSouthWest), run.size(), out(kSouthWest));
    coarsen_below(in(middle, kSouth), in(after, kCenter), in(after, kSouth), run.size(), out(kSouth));
    coarsen_below(in(middle, kSouthEast), in(after, kEast), in(after, kSouthEast), run.size(), out(kSouthEast));
  }

  static void coarsen_center(const T* before, const T* middle, const T* after, const T* south_before, const T* south,
                             int64_t size, T* __restrict out) {
    for (int64_t i = 0; i < size; ++i)
      out[i] = middle[i] + T(0.25) * (before[i] + after[i]) + (south[i] + south_before[i]);
  }

  static void coarsen_east(const T* before, const T* middle, const T* after, const Row& row_before, const Row& row,
                           const Run& run, T* __restrict out) {
    const T *se = row.plane(kSouthEast) + run.begin, *sw = row.plane(kSouthWest) + run.begin + 1;
    const T *se_before = row_before.plane(kSouthEast) + run.begin,
            *sw_before = row_before.plane(kSouthWest) + run.begin + 1;
    for (int64_t i = 0; i < run.size(); ++i)
      out[i] =
          middle[i] + T(0.25) * (before[i] + after[i]) + T(0.5) * ((se[i] + sw[i]) + (se_before[i] + sw_before[i]));
  }

  static void coarsen_below(const T* middle, const T* level_after, const T* after, int64_t size, T* __restrict out) {
    for (int64_t i = 0; i < size; ++i) out[i] = T(0.5) * (middle[i] + after[i]) + T(0.25) * level_after[i];
  }

  void write_steps(Level<T>& level, int64_t step) const {
    level.grid.for_strips([&](int64_t, int64_t top, int64_t bottom) {
      Row above(level.grid, 3);
      for (int64_t y = top; y < bottom; ++y) {
        if (level.grid.is_empty(y)) continue;
        above.load(y - 1, level.stencil_plane(kSouthWest));
        level.grid.for_runs(y, [&](const Run& run) {
          const auto in = [&](int plane) { return level.stencil_plane(plane) + run.cell; };
          for (int64_t i = 0; i < run.size(); ++i) {
            const int64_t x = run.begin + i;
            const T west = i ? in(kEast)[i - 1] : T(0);
            const T below = std::abs(in(kSouthWest)[i]) + std::abs(in(kSouth)[i]) + std::abs(in(kSouthEast)[i]);
            const T from_above =
                std::abs(above.plane(0)[x + 1]) + std::abs(above.plane(1)[x]) + std::abs(above.plane(2)[x - 1]);
            const T beside = std::abs(west) + std::abs(in(kEast)[i]);
            const T bound = in(kCenter)[i] + beside + below + from_above;
            level.step[run.cell + i] =
                is_at(arguments_.unknown, y * step, x * step) ? smoothing_step(in(kCenter)[i], bound) : T(0);
          }
        });
      }
    });
  }

  const PoissonArguments<T>& arguments_;
};

}  // namespace psal::PSAL_TARGET
PSAL_END_TARGET

#endif  // per-target include guard
