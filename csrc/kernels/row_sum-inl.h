// Sums over the links of a window, a row of pixels at a time.
//
// A link at column x of one row adds to the columns x − radius … x + radius of a row in its window: each gets the value
// at the same distance from the link's far end, times a weight. So a link reads contiguous values, and the sums of as
// many pixels as the window is wide stay in registers while it moves along the row.

#if defined(PSAL_KERNELS_ROW_SUM_INL_H_) == defined(PSAL_TARGET_TOGGLE)
#ifdef PSAL_KERNELS_ROW_SUM_INL_H_
#undef PSAL_KERNELS_ROW_SUM_INL_H_
#else
#define PSAL_KERNELS_ROW_SUM_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "../simd/lanes-inl.h"
#include "../simd/target.h"
#include "arguments.h"
#include "buffer-inl.h"
#include "links-inl.h"
#include "padded_grid-inl.h"
#include "padded_map-inl.h"

PSAL_BEGIN_TARGET
namespace psal::PSAL_TARGET {

// Calls body(i, shift) for the rows of the window around a row, which may be outside of the grid: i is the index of its
// first pixel, and a link of the row that leads to a padded index p leads to p + shift when it moves to the center and
// to the window's first column.
template <typename Body>
inline void for_window_rows(const Coordinates& center, const Patch& patch, const Shape& grid, const PaddedGrid& to,
                            const Body& body) {
  const auto first = [&](int axis) { return std::max<int64_t>(0, center[axis] - patch.radius(axis)); };
  const auto end = [&](int axis) { return std::min(grid.size[axis], center[axis] + patch.radius(axis) + 1); };
  for (int64_t z = first(0); z < end(0); ++z)
    for (int64_t y = first(1); y < end(1); ++y)
      body((z * grid.size[1] + y) * grid.size[2],
           (center[0] - z) * to.stride[0] + (center[1] - y) * to.stride[1] - patch.radius(2));
}

template <typename T>
inline Register<T> load_register(const T* from) {
  Register<T> values;
  __builtin_memcpy(&values, from, sizeof values);
  return values;
}

template <typename T>
inline void add_register(T* total, const Register<T>& values) {
  const Register<T> sum = load_register(total) + values;
  __builtin_memcpy(total, &sum, sizeof sum);
}

// Values per pixel of a row of sums: whole registers, so that adding to a pixel does not touch the next one.
template <typename T>
inline int64_t sum_pitch(int64_t channels) {
  return (channels + kRegisterWidth<T> - 1) / kRegisterWidth<T> * kRegisterWidth<T>;
}

// The sums of a row of pixels and of the border on either side: total[x · pitch + c] is of column x − radius.
template <typename T>
struct RowSum {
  // A row of pixels whose links are added.
  struct Source {
    const T* values;      // at column 0, a link with far end 0 leads to this one in the first column of its window
    int64_t first_pixel;  // index of the row's first pixel
    int64_t begin = 0, end;  // columns whose links are added
    int64_t first_link = 0, last_link = std::numeric_limits<int64_t>::max();  // no others are
    const T* weight;          // of link e: weight[(e − first_link) · weight_step + column of the window]
    int64_t weight_step = 1;
  };

  RowSum(const PaddedGrid& grid, int64_t channels_)
      : channels(channels_),
        pitch(sum_pitch<T>(channels_)),
        radius(grid.border[2]),
        width(grid.padded.size[2]),
        total(width * pitch) {}

  T* pixel(int64_t x) { return total.get() + (radius + x) * pitch; }

  void clear() { std::fill_n(total.get(), width * pitch, T(0)); }

  // Adds weight · (value − origin) for each link of a row and each column of its window. `origin` is a padded row of
  // pixels, or null for zeros. If not `WeightPerColumn`, a link has one weight.
  template <bool HasOrigin, bool WeightPerColumn = false, typename AnyLinks>
  void add(const AnyLinks& links, const Source& source, int64_t window, const T* origin) {
    for (int64_t column = 0; column < window;) {
      const auto part = [&](auto columns) {
        add_part<columns, HasOrigin, WeightPerColumn>(links, source, column, origin);
        column += columns;
      };
      const int64_t left = window - column;  // odd
      if (left >= 7)
        part(std::integral_constant<int, 7>());
      else if (left >= 5)
        part(std::integral_constant<int, 5>());
      else if (left >= 3)
        part(std::integral_constant<int, 3>());
      else
        part(std::integral_constant<int, 1>());
    }
  }

  // Adds the border to the pixels that padding repeats there.
  void fold_border(const PaddedGrid& grid, Padding padding) {
    const int64_t inner = grid.shape.size[2];
    for (int64_t x = -radius; x < inner + radius; ++x) {
      if (x == 0) x = inner;
      if (const int64_t source = padding_source(x, inner, padding); x < inner + radius && source >= 0)
        for (int64_t c = 0; c < channels; ++c) pixel(source)[c] += pixel(x)[c];
    }
  }

  const int64_t channels, pitch, radius, width;
  Buffer<T> total;

 private:
  // The same for `Columns` columns of the window, from `column` on.
  template <int Columns, bool HasOrigin, bool WeightPerColumn, typename AnyLinks>
  void add_part(const AnyLinks& links, const Source& source, int64_t column, const T* origin) {
    for (int64_t channel = 0; channel < channels; channel += kRegisterWidth<T>) {
      T* to = total.get() + (source.begin + column) * pitch + channel;
      const T* from = HasOrigin ? origin + (source.begin + column) * channels + channel : nullptr;
      Register<T> sum[Columns] = {};
      for (int64_t x = source.begin; x < source.end; ++x) {
        const int64_t first = std::max(links.first(source.first_pixel + x), source.first_link);
        const int64_t last = std::min(links.first(source.first_pixel + x + 1), source.last_link);
        for (int64_t e = first; e < last; ++e) {
          if (links.is_missing(e)) continue;
          const T* value = source.values + (links.far_end[e] + x + column) * channels + channel;
          const T* weight = source.weight + (e - source.first_link) * (WeightPerColumn ? source.weight_step : 1);
          unrolled<Columns>([&](auto d) {
            Register<T> difference = load_register(value + d * channels);
            if constexpr (HasOrigin) difference -= load_register(from + d * channels);
            sum[d] += difference * (WeightPerColumn ? weight[column + d] : weight[0]);
          });
        }
        add_register<T>(to, sum[0]);
        unrolled<Columns - 1>([&](auto d) { sum[d] = sum[d + 1]; });
        sum[Columns - 1] = Register<T>{};
        to += pitch;
        if constexpr (HasOrigin) from += channels;
      }
      unrolled<Columns - 1>([&](auto d) { add_register<T>(to + d * pitch, sum[d]); });
    }
  }
};

}  // namespace psal::PSAL_TARGET
PSAL_END_TARGET

#endif  // per-target include guard
