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

// Adds the first of several sums, which is complete, to a total; the others move up.
template <typename T, int Columns>
inline void move_on(Register<T> (&sum)[Columns], T* total) {
  add_register<T>(total, sum[0]);
  unrolled<Columns - 1>([&](auto d) { sum[d] = sum[d + 1]; });
  sum[Columns - 1] = Register<T>{};
}

// Values per pixel of a row of sums: whole registers, so that adding to a pixel does not touch the next one.
template <typename T>
inline int64_t sum_pitch(int64_t channels) {
  return (channels + kRegisterWidth<T> - 1) / kRegisterWidth<T> * kRegisterWidth<T>;
}

// Calls part(columns, column) for parts of a window that is `window` columns wide, an odd number; `columns` is known at
// compile time.
template <typename Part>
inline void for_parts(int64_t window, const Part& part) {
  for (int64_t column = 0; column < window;) {
    const auto call = [&](auto columns) {
      part(columns, column);
      column += columns;
    };
    if (const int64_t left = window - column; left >= 7)
      call(std::integral_constant<int, 7>());
    else if (left >= 5)
      call(std::integral_constant<int, 5>());
    else if (left >= 3)
      call(std::integral_constant<int, 3>());
    else
      call(std::integral_constant<int, 1>());
  }
}

// The sums of a row of pixels and of the border on either side: total[x · pitch + c] is of column x − radius.
template <typename T>
struct RowSum {
  RowSum(const PaddedGrid& grid, int64_t channels_)
      : channels(channels_),
        pitch(sum_pitch<T>(channels_)),
        radius(grid.border[2]),
        width(grid.padded.size[2]),
        total(width * pitch) {}

  T* pixel(int64_t x) { return total.get() + (radius + x) * pitch; }

  void clear() { std::fill_n(total.get(), width * pitch, T(0)); }

  // Adds weight · (value − origin) for each link of a row of pixels and each column of its window. In the first column,
  // a link with far end 0 at column 0 leads to `values`; `origin` is a padded row of pixels, or null for zeros.
  template <bool HasOrigin, typename AnyLinks>
  void add(const AnyLinks& links, int64_t first_pixel, const T* values, const T* origin) {
    for_parts(2 * radius + 1, [&](auto columns, int64_t column) {
      for (int64_t channel = 0; channel < channels; channel += kRegisterWidth<T>)
        add_part<columns, HasOrigin>(links, first_pixel, values + column * channels + channel,
                                     HasOrigin ? origin + column * channels + channel : nullptr,
                                     total.get() + column * pitch + channel);
    });
  }

  // Adds the border to the pixels that padding repeats there.
  void fold_border(const PaddedGrid& grid, Padding padding) {
    const int64_t inner = grid.shape.size[2];
    const auto fold = [&](int64_t x) {
      if (const int64_t source = padding_source(x, inner, padding); source >= 0)
        for (int64_t c = 0; c < channels; ++c) pixel(source)[c] += pixel(x)[c];
    };
    for (int64_t x = -radius; x < 0; ++x) fold(x);
    for (int64_t x = inner; x < inner + radius; ++x) fold(x);
  }

  const int64_t channels, pitch, radius, width;
  Buffer<T> total;

 private:
  template <int Columns, bool HasOrigin, typename AnyLinks>
  void add_part(const AnyLinks& links, int64_t first_pixel, const T* values, const T* origin, T* to) const {
    const int64_t step = channels, end = width - 2 * radius;  // local variables stay in registers
    const int32_t* far_end = links.far_end.get();
    const T* weight = links.weight.get();
    Register<T> sum[Columns] = {};
    for (int64_t x = 0; x < end; ++x) {
      for (int64_t e = links.first(first_pixel + x); e < links.first(first_pixel + x + 1); ++e) {
        if (links.is_missing(e)) continue;
        const T* value = values + (far_end[e] + x) * step;
        unrolled<Columns>([&](auto d) {
          Register<T> difference = load_register(value + d * step);
          if constexpr (HasOrigin) difference -= load_register(origin + d * step);
          sum[d] += difference * weight[e];
        });
      }
      move_on<T>(sum, to);
      to += pitch;
      if constexpr (HasOrigin) origin += step;
    }
    unrolled<Columns - 1>([&](auto d) { add_register<T>(to + d * pitch, sum[d]); });
  }
};

}  // namespace psal::PSAL_TARGET
PSAL_END_TARGET

#endif  // per-target include guard
