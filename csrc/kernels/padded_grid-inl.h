// Indices of a grid with a border around it.
//
// An `index` counts the pixels of the user's grid, row by row; a `padded_index` those of the grid with its border.

#if defined(PSAL_KERNELS_PADDED_GRID_INL_H_) == defined(PSAL_TARGET_TOGGLE)
#ifdef PSAL_KERNELS_PADDED_GRID_INL_H_
#undef PSAL_KERNELS_PADDED_GRID_INL_H_
#else
#define PSAL_KERNELS_PADDED_GRID_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <limits>
#include <stdexcept>

#include "../simd/target.h"
#include "arguments.h"
#include "buffer-inl.h"

PSAL_BEGIN_TARGET
namespace psal::PSAL_TARGET {

// The coordinate whose value padding repeats at `coordinate`, which may be outside of the grid; −1 for a zero.
inline int64_t padding_source(int64_t coordinate, int64_t size, Padding padding) {
  if (coordinate >= 0 && coordinate < size) return coordinate;
  if (padding == Padding::replicate) return coordinate < 0 ? 0 : size - 1;
  if (padding == Padding::zeros) return -1;
  const int64_t period = std::max<int64_t>(2 * (size - 1), 1);
  coordinate = ((coordinate % period) + period) % period;
  return std::min(std::min(coordinate, period - coordinate), size - 1);
}

constexpr int64_t kMaxPixels = std::numeric_limits<int32_t>::max();  // padded indices are int32

struct PaddedGrid {
  PaddedGrid() = default;
  PaddedGrid(const Shape& inner, const Border& border_) : shape(inner), border(border_) {
    int64_t count = 1;
    for (int axis = 0; axis < kAxes; ++axis) {
      padded.size[axis] = inner.size[axis] + 2 * std::min(border[axis], kMaxPixels);
      if (__builtin_mul_overflow(count, padded.size[axis], &count) || count > kMaxPixels)
        throw std::runtime_error("psal: a map with its border must have fewer than 2^31 pixels");
    }
    stride[2] = 1;
    stride[1] = padded.size[2];
    stride[0] = padded.size[2] * padded.size[1];
    origin = border[0] * stride[0] + border[1] * stride[1] + border[2];
  }

  int64_t padded_index(int64_t index) const {
    const int64_t row = index / shape.size[2];
    return row_start(row) + index - row * shape.size[2];
  }

  // Padded index of the first pixel of a row of the inner grid; rows of all slices are counted through.
  int64_t row_start(int64_t row) const {
    return origin + (row / shape.size[1]) * stride[0] + (row % shape.size[1]) * stride[1];
  }

  // Rows of the inner grid and of the padded one, counted through.
  int64_t padded_row(int64_t row) const { return row_start(row) / padded.size[2]; }

  // Coordinates in the inner grid; negative or too large in the border.
  Coordinates coordinates(int64_t padded_index) const {  // divisions are slow: 32 bits, and no more than needed
    const uint32_t row = uint32_t(padded_index) / uint32_t(padded.size[2]);
    const uint32_t z = padded.size[0] == 1 ? 0 : row / uint32_t(padded.size[1]);
    return {{z - border[0], row - z * padded.size[1] - border[1], padded_index - row * padded.size[2] - border[2]}};
  }

  int64_t index(int64_t padded_index) const {
    const Coordinates at = coordinates(padded_index);
    return (at[0] * shape.size[1] + at[1]) * shape.size[2] + at[2];
  }

  Shape shape, padded;    // without and with the border
  Border border;          // pixels on either side
  int64_t stride[kAxes];  // of padded indices
  int64_t origin;         // padded index of the inner grid's first pixel
};

// For each pixel of a grid: that pixel, and the border pixels that padding copies from it.
class Repeats {
 public:
  Repeats(const PaddedGrid& grid, Padding padding) {
    for (int axis = 0; axis < kAxes; ++axis) {
      const int64_t size = grid.shape.size[axis], border = grid.border[axis];
      const auto for_sources = [&](const auto& body) {
        for (int64_t coordinate = -border; coordinate < size + border; ++coordinate)
          if (const int64_t source = padding_source(coordinate, size, padding); source >= 0) body(source, coordinate);
      };
      // A counting sort into CSR offsets, as in LinksByKey.
      start_[axis] = Buffer<int64_t>(size + 2, 0);
      for_sources([&](int64_t source, int64_t) { ++start_[axis][source + 2]; });
      for (int64_t i = 2; i < size + 2; ++i) start_[axis][i] += start_[axis][i - 1];
      coordinates_[axis] = Buffer<int64_t>(size + 2 * border);
      for_sources(
          [&](int64_t source, int64_t coordinate) { coordinates_[axis][start_[axis][source + 1]++] = coordinate; });
    }
  }

  // Calls body(coordinates) for each of those pixels, in the order of the padded grid.
  template <typename Body>
  void for_each(const Coordinates& of, const Body& body) const {
    for_each_row(of[0], of[1],
                 [&](const Coordinates& row) { for_axis(2, of[2], [&](int64_t x) { body({{row[0], row[1], x}}); }); });
  }

  // The same for whole rows; their coordinates have column 0.
  template <typename Body>
  void for_each_row(int64_t z, int64_t y, const Body& body) const {
    for_axis(0, z,
             [&](int64_t repeat_z) { for_axis(1, y, [&](int64_t repeat_y) { body({{repeat_z, repeat_y, 0}}); }); });
  }

 private:
  template <typename Body>
  void for_axis(int axis, int64_t of, const Body& body) const {
    for (int64_t i = start_[axis][of]; i < start_[axis][of + 1]; ++i) body(coordinates_[axis][i]);
  }

  Buffer<int64_t> start_[kAxes], coordinates_[kAxes];  // of coordinate c along an axis: [start[c], start[c + 1])
};

}  // namespace psal::PSAL_TARGET
PSAL_END_TARGET

#endif  // per-target include guard
