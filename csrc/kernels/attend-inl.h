// Attention over given matches: softmax and weighted sum in one pass over the links.
//
// Without aggregation the window is one pixel. With it, pixel i uses the links of all pixels s in its window, moved
// along by i − s: the link s → m leads to m + (i − s). Where the value has few channels, tiles of pixels share the
// exponentials of their links, see window_tile-inl.h.

#if defined(PSAL_KERNELS_ATTEND_INL_H_) == defined(PSAL_TARGET_TOGGLE)
#ifdef PSAL_KERNELS_ATTEND_INL_H_
#undef PSAL_KERNELS_ATTEND_INL_H_
#else
#define PSAL_KERNELS_ATTEND_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "../simd/lanes-inl.h"
#include "../simd/target.h"
#include "arguments.h"
#include "buffer-inl.h"
#include "links-inl.h"
#include "padded_map-inl.h"
#include "parallel-inl.h"
#include "tuning.h"
#include "window_tile-inl.h"

PSAL_BEGIN_TARGET
namespace psal::PSAL_TARGET {

// The log of a softmax's denominator, as two numbers: their sum would round away differences between scores of a
// million. Scores are divided by the temperature only after the largest is subtracted, so that nothing overflows.
template <typename T>
struct LogMass {
  T max_score = std::numeric_limits<T>::infinity();  // or one above it; together with 0: no terms, every weight is 0
  T log_sum = 0;                                     // log Σ e^((score − max_score) / temperature)
};

template <typename T>
class Attention {
 public:
  explicit Attention(const AttendArguments<T>& arguments)
      : arguments_(arguments), links_(arguments.query_shape.count(), arguments.neighbors) {
    for (int axis = 0; axis < kAxes; ++axis) border_[axis] = arguments.patch.radius(axis);
    queries_ = PaddedGrid(arguments.query_shape, border_);
    keys_ = PaddedGrid(arguments.key_shape, border_);
    links_.fill(arguments.index, queries_, keys_,
                [&](int64_t match, int64_t, int64_t) { return arguments.score[match]; });
    is_key_ = inner_pixels(keys_);
  }

  void forward() {
    // With more channels, sums that stay in registers are as fast or faster. Time of tiles relative to those, on 160²
    // and 256² pixels: 0.3 with 3 channels, k = 1, 7 × 7; 0.9 with 16, k = 3, 3 × 3; 1.1 to 1.6 with 64, k = 3, 7 × 7.
    if (arguments_.patch.count() > 1 && arguments_.channels < kWidth<T>) return aggregate_tiles();
    const PaddedMap<T> value =
        padded_map(arguments_.value, arguments_.key_shape, arguments_.channels, border_, Padding::zeros);
    write_rows(queries_, arguments_.out, [&](int64_t row, int64_t x, T* total) {
      write_mass(row * queries_.shape.size[2] + x, sum_values(value, center_of(queries_, row, x), total));
    });
  }

 private:
  static constexpr T kInfinity = std::numeric_limits<T>::infinity();
  // Of a pixel in a tile. Terms that matter, and their products with values as small, are then far above the smallest
  // normal number.
  static constexpr T kMinMass = sizeof(T) == 4 ? T(1e-19) : T(1e-150);

  void aggregate_tiles() const {
    const PaddedMap<T> value = counted_map(arguments_.value, arguments_.key_shape, arguments_.channels, border_);
    const TileGrid tiles(arguments_.query_shape);
    for_each_task(tiles.count(), [&](int64_t number) {
      WindowTile<T> tile(tiles[number], arguments_.patch, queries_.shape);
      if (!tile.read_scores(links_)) return write_nothing(tile.area);
      tile.exponentiate(arguments_.inverse_temperature);
      tile.add_values(links_, value);
      write_tile(tile, value);
    });
  }

  // Pixels without links.
  void write_nothing(const TileArea& area) const {
    for (int64_t y = area.top; y < area.bottom; ++y) {
      const int64_t first = (area.z * queries_.shape.size[1] + y) * queries_.shape.size[2];
      for (int64_t x = area.left; x < area.right; ++x) {
        for (int64_t c = 0; c < arguments_.channels; ++c) arguments_.out[c * queries_.shape.count() + first + x] = 0;
        write_mass(first + x, {});
      }
    }
  }

  // Divides a tile's sums by their masses. Pixels whose scores are all far below the tile's largest are summed anew.
  void write_tile(WindowTile<T>& tile, const PaddedMap<T>& value) const {
    const TileArea& area = tile.area;
    const int64_t channels = arguments_.channels, width = area.right - area.left;
    for (int64_t y = area.top; y < area.bottom; ++y) {
      const int64_t row = area.z * queries_.shape.size[1] + y, first = row * queries_.shape.size[2] + area.left;
      for (int64_t x = 0; x < width; ++x) {
        T* total = tile.sums_of(y, area.left + x);
        const T mass = total[channels];
        if (mass >= kMinMass) {
          const T scale = 1 / mass;
          for (int64_t c = 0; c < channels; ++c) total[c] *= scale;
          write_mass(first + x, {.max_score = tile.origin(), .log_sum = std::log(mass)});
        } else {
          std::fill_n(total, channels + 1, T(0));
          write_mass(first + x, sum_values(value, center_of(queries_, row, area.left + x), total));
        }
      }
      write_planes(tile.sums_of(y, area.left), width, channels, arguments_.out + first, queries_.shape.count(),
                   channels + 1);
    }
  }

  void write_mass(int64_t query, const LogMass<T>& mass) const {
    arguments_.log_mass[query] = mass.max_score;
    arguments_.log_mass[queries_.shape.count() + query] = mass.log_sum;
  }

  // By padded index: 1 in the inner grid, 0 in the border.
  static Buffer<uint8_t> inner_pixels(const PaddedGrid& grid) {
    Buffer<uint8_t> inner(grid.padded.count(), 0);
    for (int64_t row = 0; row < grid.shape.rows(); ++row)
      std::fill_n(inner.get() + grid.row_start(row), grid.shape.size[2], uint8_t(1));
    return inner;
  }

  static Coordinates center_of(const PaddedGrid& grid, int64_t row, int64_t x) {
    return {{row / grid.shape.size[1], row % grid.shape.size[1], x}};
  }

  // Calls sum(row, x, total) for every pixel of a grid, with zeros to add to, and writes the totals as planes.
  template <typename Sum>
  void write_rows(const PaddedGrid& grid, T* out, const Sum& sum) const {
    const int64_t width = grid.shape.size[2], channels = arguments_.channels;
    for_ranges(grid.shape.rows(), kWindowRowsPerTask, [&](int64_t begin, int64_t end) {
      Buffer<T> line(width * channels);
      for (int64_t row = begin; row < end; ++row) {
        std::fill_n(line.get(), width * channels, T(0));
        for (int64_t x = 0; x < width; ++x) sum(row, x, line.get() + x * channels);
        write_planes(line.get(), width, channels, out + row * width, grid.shape.count(), channels);
      }
    });
  }

  // The weighted mean of the values that a window's links lead to, with a running maximum (online softmax): when a
  // larger score turns up, what was summed so far is scaled down. Links that leave the key's grid drop out. A score
  // that is NaN or +∞ makes the mean NaN, as do scores of −∞ alone.
  LogMass<T> sum_values(const PaddedMap<T>& value, const Coordinates& center, T* total) const {
    Terms<T> terms;
    T max_score = -kInfinity, mass = 0;
    bool any = false;
    const auto flush = [&] {
      any |= terms.size > 0;
      const T highest = std::max(max_score, largest_weight(terms));
      if (highest > max_score) {
        const T shrink = std::exp((max_score - highest) * arguments_.inverse_temperature);
        mass *= shrink;
        for (int64_t c = 0; c < value.channels; ++c) total[c] *= shrink;
        max_score = highest;
      }
      const T origin = max_score == -kInfinity ? T(0) : max_score;
      mass += to_exponentials(terms, [&](Lanes<T> score) { return (score - origin) * arguments_.inverse_temperature; });
      terms.add_to(value, total);
      terms.size = 0;
    };
    collect(links_, center, queries_.shape, keys_, terms, flush, [&](int64_t link, int32_t key, int64_t at) {
      return terms.put(at, key, links_.weight[link], is_key_[key]);
    });
    if (!any) return {};
    const T scale = 1 / mass;
    for (int64_t c = 0; c < arguments_.channels; ++c) total[c] *= scale;
    return {.max_score = max_score, .log_sum = std::log(mass)};
  }

  // Collects the terms of the window around `center`: push_term(e, p, n) puts that of link e, which leads to the padded
  // index p, as term n, and returns whether it exists. Calls flush() whenever the terms are full, and at the end.
  template <typename AnyLinks, typename Flush, typename PushTerm>
  void collect(const AnyLinks& links, const Coordinates& center, const Shape& shape, const PaddedGrid& to,
               Terms<T>& terms, const Flush& flush, const PushTerm& push_term) const {
    for_window(links, center, arguments_.patch, shape, to, [&](int64_t first, int64_t last, int64_t shift) {
      const auto push_terms = [&](int64_t begin, int64_t end) {
        int64_t size = terms.size;  // a local variable stays in a register
        for (int64_t e = begin; e < end; ++e) size += push_term(e, int32_t(links.far_end[e] + shift), size);
        terms.size = size;
      };
      terms.add(first, last, push_terms, flush);
    });
    flush();
  }

  static T largest_weight(Terms<T>& terms) {
    for (int64_t i = terms.size; i % kWidth<T>; ++i) terms.weight[i] = -kInfinity;
    Lanes<T> highest = broadcast(-kInfinity);
    for (int64_t i = 0; i < terms.size; i += kWidth<T>) highest = larger<T>(load(terms.weight + i), highest);
    return largest<T>(highest);
  }

  // Replaces weights x by e^f(x); returns their sum.
  template <typename Exponent>
  static T to_exponentials(Terms<T>& terms, const Exponent& f) {
    for (int64_t i = terms.size; i % kWidth<T>; ++i) terms.weight[i] = -kInfinity;
    Lanes<T> mass{};
    for (int64_t i = 0; i < terms.size; i += kWidth<T>) {
      const Lanes<T> e = exponential(f(load(terms.weight + i)));
      store(terms.weight + i, e);
      mass += e;
    }
    return sum<T>(mass);
  }

  const AttendArguments<T>& arguments_;
  Links<T> links_;  // their weights are the scores
  Border border_;
  PaddedGrid queries_, keys_;
  Buffer<uint8_t> is_key_;  // by padded index: 0 in the border
};

template <typename T>
void attend(const AttendArguments<T>& arguments) {
  Attention<T>(arguments).forward();
}

}  // namespace psal::PSAL_TARGET
PSAL_END_TARGET

#endif  // per-target include guard
