// A map as the kernels read it: channels last, continued by half a patch on every side, so that a patch is a few
// contiguous runs and no pixel needs a border check.

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
#include "parallel-inl.h"

PSAL_BEGIN_TARGET
namespace psal::PSAL_TARGET {

// Which pixel position `at` of an axis continues; −1 for a zero.
inline int64_t padding_source(int64_t at, int64_t size, Padding padding) {
  if (at >= 0 && at < size) return at;
  if (padding == Padding::replicate) return at < 0 ? 0 : size - 1;
  if (padding == Padding::zeros) return -1;
  const int64_t period = std::max<int64_t>(2 * (size - 1), 1);
  at = ((at % period) + period) % period;
  return std::min(std::min(at, period - at), size - 1);
}

// Pixel numbers of a grid with a border around it.
struct Frame {
  Frame() = default;
  Frame(const Shape& inner, const int64_t (&border_)[kAxes]) : shape(inner) {
    for (int axis = 0; axis < kAxes; ++axis) {
      border[axis] = border_[axis];
      padded.size[axis] = inner.size[axis] + 2 * border[axis];
    }
    stride[2] = 1;
    stride[1] = padded.size[2];
    stride[0] = padded.size[2] * padded.size[1];
    origin = border[0] * stride[0] + border[1] * stride[1] + border[2];
  }

  // Padded number of a pixel given by its flat number without the border.
  int64_t number(int64_t flat) const {
    const int64_t row = flat / shape.size[2];
    return row_start(row) + flat - row * shape.size[2];
  }
  int64_t row_start(int64_t row) const {
    return origin + (row / shape.size[1]) * stride[0] + (row % shape.size[1]) * stride[1];
  }
  struct Position {
    int64_t at[kAxes];
  };
  Position position(int64_t number) const {  // divisions are slow: 32 bits, and no more than needed
    const uint32_t row = uint32_t(number) / uint32_t(padded.size[2]);
    const uint32_t z = padded.size[0] == 1 ? 0 : row / uint32_t(padded.size[1]);
    return {{z - border[0], row - z * padded.size[1] - border[1], number - row * padded.size[2] - border[2]}};
  }
  int64_t flat(int64_t number) const {
    const Position p = position(number);
    return (p.at[0] * shape.size[1] + p.at[1]) * shape.size[2] + p.at[2];
  }

  Shape shape, padded;
  int64_t border[kAxes], stride[kAxes], origin;
};

constexpr int64_t kRowsPerTask = 8;

template <typename T>
struct PaddedMap {
  Frame frame;
  int64_t channels = 0;
  Buffer<T> data;

  const T* pixel(int64_t number) const { return data.get() + number * channels; }
  T* pixel(int64_t number) { return data.get() + number * channels; }
};

template <typename T>
inline void copy_row(const View<const T>& from, int64_t offset, int64_t width, int64_t channels, T* to) {
  const T* source = from.data + offset;
  const int64_t step = from.stride[2];
  if (from.channel_stride == 1 && step == channels) {
    std::copy_n(source, width * channels, to);
    return;
  }
  constexpr int64_t block = 16;
  for (int64_t x = 0; x < width; x += block) {
    const int64_t end = std::min(width, x + block);
    for (int64_t c = 0; c < channels; ++c) {
      const T* plane = source + c * from.channel_stride;
      for (int64_t i = x; i < end; ++i) to[i * channels + c] = plane[i * step];
    }
  }
}

template <typename T>
PaddedMap<T> padded_map(const View<const T>& from, const Shape& shape, int64_t channels, const int64_t (&border)[kAxes],
                        Padding padding) {
  PaddedMap<T> map;
  map.frame = Frame(shape, border);
  map.channels = channels;
  map.data = Buffer<T>(map.frame.padded.count() * channels);
  const Frame& frame = map.frame;
  const int64_t width = frame.padded.size[2], left = border[2];
  for_ranges(frame.padded.rows(), kRowsPerTask, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t z = padding_source(row / frame.padded.size[1] - border[0], shape.size[0], padding);
      const int64_t y = padding_source(row % frame.padded.size[1] - border[1], shape.size[1], padding);
      T* line = map.pixel(row * width);
      if (z < 0 || y < 0) {
        std::fill_n(line, width * channels, T(0));
        continue;
      }
      T* inner = line + left * channels;
      copy_row(from, z * from.stride[0] + y * from.stride[1], shape.size[2], channels, inner);
      for (int64_t x = 0; x < width; ++x) {
        if (x == left) x += shape.size[2];
        if (x >= width) break;
        const int64_t source = padding_source(x - left, shape.size[2], padding);
        if (source < 0)
          std::fill_n(line + x * channels, channels, T(0));
        else
          std::copy_n(inner + source * channels, channels, line + x * channels);
      }
    }
  });
  return map;
}

// Writes a row of channels-last pixels into planes.
template <typename T>
inline void write_planes(const T* line, int64_t width, int64_t channels, T* out, int64_t plane) {
  constexpr int64_t block = 16;
  for (int64_t x = 0; x < width; x += block)
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t i = x; i < std::min(width, x + block); ++i) out[c * plane + i] = line[i * channels + c];
}

// The adjoint of padding: adds what stands in the border to the pixels it continues, and writes the result planar.
template <typename T>
void fold_border(PaddedMap<T>& map, Padding padding, T* out) {
  const Frame& frame = map.frame;
  const int64_t channels = map.channels;
  const auto add_to = [&](int64_t to, int64_t from) {
    T* a = map.pixel(to);
    const T* b = map.pixel(from);
    for (int64_t c = 0; c < channels; ++c) a[c] += b[c];
  };
  if (padding != Padding::zeros) {
    for (int axis = 0; axis < kAxes; ++axis) {  // each axis folds into the pixels that are left
      const int64_t outer = frame.padded.count() / frame.padded.size[axis];
      for (int64_t at = 0; at < frame.padded.size[axis]; ++at) {
        const int64_t source = padding_source(at - frame.border[axis], frame.shape.size[axis], padding);
        if (source == at - frame.border[axis]) continue;
        const int64_t inner = frame.stride[axis];
        for (int64_t i = 0; i < outer; ++i) {
          const int64_t base = i / inner * inner * frame.padded.size[axis] + i % inner;
          add_to(base + (source + frame.border[axis]) * inner, base + at * inner);
        }
      }
    }
  }
  const int64_t width = frame.shape.size[2];
  for_ranges(frame.shape.rows(), kRowsPerTask, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      write_planes(map.pixel(frame.row_start(row)), width, channels, out + row * width, frame.shape.count());
  });
}

}  // namespace psal::PSAL_TARGET
PSAL_END_TARGET

#endif  // per-target include guard
