// The unknown pixels of a mask, compacted row by row, and rows of a map on them.

#if defined(PSAL_KERNELS_CELL_GRID_INL_H_) == defined(PSAL_TARGET_TOGGLE)
#ifdef PSAL_KERNELS_CELL_GRID_INL_H_
#undef PSAL_KERNELS_CELL_GRID_INL_H_
#else
#define PSAL_KERNELS_CELL_GRID_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <vector>

#include "../simd/target.h"
#include "buffer-inl.h"
#include "parallel-inl.h"

PSAL_BEGIN_TARGET
namespace psal::PSAL_TARGET {

constexpr int64_t kMaxRunGap = 8;          // known pixels between two unknown ones that a run may contain
constexpr int64_t kCellsPerStrip = 32768;  // of a task, at least
constexpr int64_t kRowBorder = 16;         // zeros on either side of an expanded row; coarsening reads 4 of them

// Successive cells of a row, and the columns that they lie in.
struct Run {
  int64_t begin, end;  // columns
  int64_t cell;        // index of the first one's cell
  int64_t size() const { return end - begin; }
};

// Every step-th pixel of a mask along both axes: the grid of a level. Its cells are the unknown pixels, and the known
// ones between two that are close to each other: maps have values at cells only, zero at known ones.
class CellGrid {
 public:
  int64_t height, width;
  int64_t cells = 0, unknowns = 0;

  CellGrid(const bool* unknown, int64_t full_height, int64_t full_width, int64_t step)
      : height((full_height + step - 1) / step), width((full_width + step - 1) / step) {
    first_run_.reserve(height + 1);
    int64_t first_cell = 0;  // of the strip
    for (int64_t y = 0; y < height; ++y) {
      if (y % 2 == 0 && (y == 0 || cells - first_cell >= kCellsPerStrip)) {
        strips_.push_back(y);
        first_cell = cells;
      }
      first_run_.push_back(int64_t(runs_.size()));
      add_row(unknown + y * step * full_width, step);
    }
    first_run_.push_back(int64_t(runs_.size()));
    strips_.push_back(height);
  }

  const Run* runs_begin(int64_t y) const { return runs_.data() + first_run_[y]; }
  const Run* runs_end(int64_t y) const { return runs_.data() + first_run_[y + 1]; }
  bool is_empty(int64_t y) const { return y < 0 || y >= height || first_run_[y] == first_run_[y + 1]; }

  // Calls visit(run) for the runs of a row, which may lie outside.
  template <typename Visit>
  void for_runs(int64_t y, const Visit& visit) const {
    if (is_empty(y)) return;
    for (const Run* run = runs_begin(y); run < runs_end(y); ++run) visit(*run);
  }

  int64_t strips() const { return int64_t(strips_.size()) - 1; }

  // Calls body(strip, top, bottom) for strips of rows, in parallel; the first row of each is even. They depend on the
  // grid alone.
  template <typename Body>
  void for_strips(const Body& body) const {
    for_each_task(strips(), [&](int64_t i) { body(i, strips_[i], strips_[i + 1]); });
  }

 private:
  void add_row(const bool* row, int64_t step) {
    const size_t first = runs_.size();
    for (int64_t x = 0; x < width; ++x) {
      if (!row[x * step]) continue;
      int64_t end = x + 1;
      while (end < width && row[end * step]) ++end;
      unknowns += end - x;
      if (runs_.size() > first && x - runs_.back().end <= kMaxRunGap) {
        cells += end - runs_.back().end;
        runs_.back().end = end;
      } else {
        runs_.push_back({x, end, cells});
        cells += end - x;
      }
      x = end;
    }
  }

  std::vector<Run> runs_;
  std::vector<int64_t> first_run_;  // [height + 1]
  std::vector<int64_t> strips_;     // their first rows, and the height
};

// A row of a map with all its columns, zero outside of the runs.
template <typename T>
class ExpandedRow {
 public:
  ExpandedRow(const CellGrid& grid, int64_t planes)
      : grid_(&grid),
        planes_(planes),
        pitch_((grid.width + 2 * kRowBorder + 15) / 16 * 16),
        data_(planes * pitch_, T(0)) {}

  // The value at column 0.
  T* plane(int64_t c) { return data_.get() + c * pitch_ + kRowBorder; }
  const T* plane(int64_t c) const { return data_.get() + c * pitch_ + kRowBorder; }

  // Calls fill(run, c, to) for all runs of a row, which may lie outside, and planes: it writes the values of the run.
  template <typename Fill>
  void load(int64_t y, const Fill& fill) {
    grid_->for_runs(y_, [&](const Run& run) {
      for (int64_t c = 0; c < planes_; ++c) std::fill(plane(c) + run.begin, plane(c) + run.end, T(0));
    });
    y_ = y;
    grid_->for_runs(y, [&](const Run& run) {
      for (int64_t c = 0; c < planes_; ++c) fill(run, c, plane(c) + run.begin);
    });
  }

  // The same from planes of cells.
  void load(int64_t y, const T* cells) {
    load(y,
         [&](const Run& run, int64_t c, T* to) { std::copy_n(cells + c * grid_->cells + run.cell, run.size(), to); });
  }

 private:
  const CellGrid* grid_;
  int64_t planes_, pitch_;
  int64_t y_ = -1;
  Buffer<T> data_;
};

// Bilinear interpolation of a coarse map to the columns begin … end of a fine row, from the coarse rows above and below
// it, which are the same for an even one. May write one more column on either side.
template <typename T>
inline void interpolate(const T* above, const T* below, int64_t begin, int64_t end, T* __restrict out) {
  for (int64_t x = begin / 2; x < (end + 1) / 2; ++x) {
    const T left = above[x] + below[x], right = above[x + 1] + below[x + 1];
    out[2 * x] = T(0.5) * left;
    out[2 * x + 1] = T(0.25) * (left + right);
  }
}

// The two coarse rows around a fine one, and their interpolation.
template <typename T>
class InterpolatedRow {
 public:
  InterpolatedRow(const CellGrid& coarse, int64_t planes)
      : rows_{ExpandedRow<T>(coarse, planes), ExpandedRow<T>(coarse, planes)} {}

  // Makes the coarse rows around a fine row available, from planes of cells.
  void move_to(int64_t y, const T* cells) {
    for (const int64_t coarse : {y / 2, (y + 1) / 2}) {
      if (loaded_[coarse % 2] == coarse) continue;
      rows_[coarse % 2].load(coarse, cells);
      loaded_[coarse % 2] = coarse;
    }
    y_ = y;
  }

  void write(int64_t c, int64_t begin, int64_t end, T* out) const {
    interpolate(rows_[y_ / 2 % 2].plane(c), rows_[(y_ + 1) / 2 % 2].plane(c), begin, end, out);
  }

 private:
  ExpandedRow<T> rows_[2];
  int64_t loaded_[2] = {-1, -1};
  int64_t y_ = 0;
};

}  // namespace psal::PSAL_TARGET
PSAL_END_TARGET

#endif  // per-target include guard
