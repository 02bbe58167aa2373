// A map as the kernels read it: channels last, with a border that padding fills. A patch is then a few contiguous runs,
// and no pixel needs a bounds check.

#if defined(PSAL_KERNELS_PADDED_MAP_INL_H_) == defined(PSAL_TARGET_TOGGLE)
#ifdef PSAL_KERNELS_PADDED_MAP_INL_H_
#undef PSAL_KERNELS_PADDED_MAP_INL_H_
#else
#define PSAL_KERNELS_PADDED_MAP_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "../simd/target.h"
#include "arguments.h"
#include "buffer-inl.h"
#include "padded_grid-inl.h"
#include "parallel-inl.h"
#include "tuning.h"

PSAL_BEGIN_TARGET
namespace psal::PSAL_TARGET {

template <typename T>
struct PaddedMap {
  PaddedGrid grid;
  int64_t channels = 0;
  Buffer<T> data;  // [padded pixels][channels]

  const T* pixel(int64_t padded_index) const { return data.get() + padded_index * channels; }
  T* pixel(int64_t padded_index) { return data.get() + padded_index * channels; }
};

constexpr int64_t kTransposeBlock = 16;  // pixels: their values stay in cache while channels are interleaved

// Copies a row of pixels and makes it channels last, each pixel `pitch` values after the one before.
template <typename T>
inline void read_planes(const View<const T>& from, int64_t offset, int64_t width, int64_t channels, T* row,
                        int64_t pitch) {
  const T* source = from.data + offset;
  const int64_t step = from.stride[2];
  if (from.channel_stride == 1 && step == channels && pitch == channels) {
    std::copy_n(source, width * channels, row);
    return;
  }
  for (int64_t x = 0; x < width; x += kTransposeBlock) {
    const int64_t end = std::min(width, x + kTransposeBlock);
    for (int64_t c = 0; c < channels; ++c) {
      const T* plane = source + c * from.channel_stride;
      for (int64_t i = x; i < end; ++i) row[i * pitch + c] = plane[i * step];
    }
  }
}

// Copies a row of channels-last pixels, `pitch` values apart, into planes, `plane` values apart.
template <typename T>
inline void write_planes(const T* row, int64_t width, int64_t channels, T* out, int64_t plane, int64_t pitch) {
  for (int64_t x = 0; x < width; x += kTransposeBlock)
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t i = x; i < std::min(width, x + kTransposeBlock); ++i) out[c * plane + i] = row[i * pitch + c];
}

// Writes one row of the padded map, which may lie in the border: [padded width][channels].
template <typename T>
void read_padded_row(const View<const T>& from, const PaddedGrid& grid, int64_t channels, Padding padding, int64_t row,
                     T* outer) {
  const Shape& shape = grid.shape;
  const int64_t width = grid.padded.size[2], left = grid.border[2];
  const int64_t z = padding_source(row / grid.padded.size[1] - grid.border[0], shape.size[0], padding);
  const int64_t y = padding_source(row % grid.padded.size[1] - grid.border[1], shape.size[1], padding);
  if (z < 0 || y < 0) {
    std::fill_n(outer, width * channels, T(0));
    return;
  }
  T* inner = outer + left * channels;
  read_planes(from, z * from.stride[0] + y * from.stride[1], shape.size[2], channels, inner, channels);
  for (int64_t x = 0; x < width; ++x) {
    if (x == left) x += shape.size[2];
    if (x >= width) break;
    const int64_t source = padding_source(x - left, shape.size[2], padding);
    if (source < 0)
      std::fill_n(outer + x * channels, channels, T(0));
    else
      std::copy_n(inner + source * channels, channels, outer + x * channels);
  }
}

template <typename T>
PaddedMap<T> padded_map(const View<const T>& from, const Shape& shape, int64_t channels, const Border& border,
                        Padding padding) {
  PaddedMap<T> map;
  map.grid = PaddedGrid(shape, border);
  map.channels = channels;
  map.data = Buffer<T>(map.grid.padded.count() * channels);
  for_ranges(map.grid.padded.rows(), kRowsPerTask, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      read_padded_row(from, map.grid, channels, padding, row, map.pixel(row * map.grid.padded.size[2]));
  });
  return map;
}

}  // namespace psal::PSAL_TARGET
PSAL_END_TARGET

#endif  // per-target include guard
