// Sums over windows for a tile of pixels at once. A link adds its values, weighted, to all pixels whose windows contain
// it: their rows are contiguous, in the map of values as in the tile. All links of a tile share one origin of the
// exponentials, so that each needs one, not one for every pixel.

#if defined(PSAL_KERNELS_WINDOW_TILE_INL_H_) == defined(PSAL_TARGET_TOGGLE)
#ifdef PSAL_KERNELS_WINDOW_TILE_INL_H_
#undef PSAL_KERNELS_WINDOW_TILE_INL_H_
#else
#define PSAL_KERNELS_WINDOW_TILE_INL_H_
#endif

#include <algorithm>
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

PSAL_BEGIN_TARGET
namespace psal::PSAL_TARGET {

// Rows and columns of a slice; the ends are excluded.
struct TileArea {
  int64_t z, top, bottom, left, right;
};

// The tiles of a grid.
class TileGrid {
 public:
  explicit TileGrid(const Shape& shape)
      : shape_(shape),
        down_((shape.size[1] + kTileRows - 1) / kTileRows),
        across_((shape.size[2] + kTileColumns - 1) / kTileColumns) {}

  int64_t count() const { return shape_.size[0] * down_ * across_; }

  TileArea operator[](int64_t number) const {
    const int64_t row = number / across_, top = row % down_ * kTileRows, left = number % across_ * kTileColumns;
    return {.z = row / down_,
            .top = top,
            .bottom = std::min(shape_.size[1], top + kTileRows),
            .left = left,
            .right = std::min(shape_.size[2], left + kTileColumns)};
  }

 private:
  Shape shape_;
  int64_t down_, across_;
};

// A map of values with a border of zeros, and one more channel: 1 in the inner grid, 0 in the border. The weighted sum
// of that channel is a softmax's denominator.
template <typename T>
PaddedMap<T> counted_map(const View<const T>& view, const Shape& shape, int64_t channels, const Border& border) {
  PaddedMap<T> map;
  map.grid = PaddedGrid(shape, border);
  map.channels = channels + 1;
  map.data = Buffer<T>(map.grid.padded.count() * map.channels);
  const int64_t width = map.grid.padded.size[2], left = border[2], inner = shape.size[2];
  for_ranges(map.grid.padded.rows(), kRowsPerTask, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      T* out = map.pixel(row * width);
      const int64_t z = row / map.grid.padded.size[1] - border[0], y = row % map.grid.padded.size[1] - border[1];
      const bool is_inner = z >= 0 && z < shape.size[0] && y >= 0 && y < shape.size[1];
      std::fill_n(out, (is_inner ? left : width) * map.channels, T(0));
      if (!is_inner) continue;
      out += left * map.channels;
      read_planes(view, z * view.stride[0] + y * view.stride[1], inner, channels, out, map.channels);
      for (int64_t x = 0; x < inner; ++x) out[x * map.channels + channels] = 1;
      std::fill_n(out + inner * map.channels, left * map.channels, T(0));
    }
  });
  return map;
}

template <typename T>
class WindowTile {
 public:
  const TileArea area;

  WindowTile(const TileArea& area_, const Patch& patch, const Shape& shape)
      : area(area_), patch_(patch), shape_(shape) {
    const int64_t low[kAxes] = {area.z, area.top, area.left}, high[kAxes] = {area.z + 1, area.bottom, area.right};
    for (int axis = 0; axis < kAxes; ++axis) {
      first_[axis] = std::max<int64_t>(0, low[axis] - patch.radius(axis));
      end_[axis] = std::min(shape.size[axis], high[axis] + patch.radius(axis));
    }
  }

  // Copies the scores of all links that reach the tile; returns whether there are any.
  bool read_scores(const Links<T>& links) {
    row_ = (end_[2] - first_[2]) * links.neighbors;
    weights_ = Buffer<T>(rows() * row_ + kWidth<T>);
    bool any = false;
    T* weight = weights_.get();
    for_rows([&](int64_t z, int64_t y) {
      const int64_t first = links.first((z * shape_.size[1] + y) * shape_.size[2] + first_[2]);
      for (int64_t i = 0; i < row_; ++i) {
        const bool missing = links.is_missing(first + i);
        const T score = missing ? -kInfinity : links.weight[first + i];
        any |= !missing;
        origin_ = score > origin_ ? score : origin_;
        weight[i] = score;
      }
      weight += row_;
    });
    return any;
  }

  // The largest score, NaNs aside.
  T origin() const { return origin_; }

  void exponentiate(T inverse_temperature) {
    const T origin = origin_ == -kInfinity ? T(0) : origin_;  // −∞ − −∞ would be NaN
    for (int64_t i = 0; i < rows() * row_; i += kWidth<T>)
      store(weights_.get() + i, exponential((load(weights_.get() + i) - origin) * inverse_temperature));
  }

  // Adds each link's values to the pixels whose windows contain it.
  void add_values(const Links<T>& links, const PaddedMap<T>& value) {
    channels_ = value.channels;
    // Links at the tile's rim also add to pixels beyond it, which are not read.
    pitch_ = (area.right - area.left + 4 * patch_.radius(2)) * channels_;
    sums_ = Buffer<T>((area.bottom - area.top) * pitch_ + kWidth<T>, T(0));
    const int64_t run = patch_.size[2] * channels_;
    switch (run / kWidth<T>) {  // float32: windows of 3, 5 and 7 pixels with three to five channels
      case 0: return add_runs<0>(links, value, run);
      case 1: return add_runs<1>(links, value, run);
      case 2: return add_runs<2>(links, value, run);
      default: return add_runs<-1>(links, value, run);
    }
  }

  T* sums_of(int64_t y, int64_t x) {
    return sums_.get() + (y - area.top) * pitch_ + (x - area.left + 2 * patch_.radius(2)) * channels_;
  }

 private:
  static constexpr T kInfinity = std::numeric_limits<T>::infinity();

  int64_t rows() const { return (end_[0] - first_[0]) * (end_[1] - first_[1]); }

  // Calls body(z, y) for the rows of links that reach the tile.
  template <typename Body>
  void for_rows(const Body& body) const {
    for (int64_t z = first_[0]; z < end_[0]; ++z)
      for (int64_t y = first_[1]; y < end_[1]; ++y) body(z, y);
  }

  // `Vectors` is the number of whole vectors in a run, or −1.
  template <int Vectors>
  void add_runs(const Links<T>& links, const PaddedMap<T>& value, int64_t run) {
    constexpr int w = kWidth<T>;
    const int64_t vectors = Vectors < 0 ? run / w : Vectors, radius = patch_.radius(2), k = links.neighbors;
    const Bits<T> tail = first_lanes<T>(run - vectors * w);
    // So far apart, two runs have no vector in common: a load need not wait for the store before it.
    const int64_t step = ((vectors + 1) * w + channels_ - 1) / channels_;
    const T* weights = weights_.get();
    for_rows([&](int64_t z, int64_t y) {
      const int64_t first = links.first((z * shape_.size[1] + y) * shape_.size[2] + first_[2]);
      const int64_t low = std::max(area.top, y - patch_.radius(1));
      const int64_t count = std::min(area.bottom, y + patch_.radius(1) + 1) - low;
      const int64_t shift = (area.z - z) * value.grid.stride[0] + (low - y) * value.grid.stride[1] - radius;
      for (int64_t phase = 0; phase < std::min(step, end_[2] - first_[2]); ++phase)
        for (int64_t x = first_[2] + phase; x < end_[2]; x += step)
          for (int64_t n = 0; n < k; ++n) {
            const int64_t link = (x - first_[2]) * k + n;
            if (links.is_missing(first + link)) continue;  // others count even with weight 0: NaN · 0 is NaN
            const T weight = weights[link];
            const T* from = value.pixel(links.far_end[first + link] + x + shift);
            T* to = sums_of(low, x - radius);
            for (int64_t i = 0; i < count; ++i, from += value.grid.stride[1] * channels_, to += pitch_) {
              for (int64_t v = 0; v < vectors; ++v) store(to + v * w, load(to + v * w) + load(from + v * w) * weight);
              T* last = to + vectors * w;
              store(last, load(last) + masked<T>(load(from + vectors * w) * weight, tail));
            }
          }
      weights += row_;
    });
  }

  const Patch& patch_;
  const Shape& shape_;
  int64_t first_[kAxes], end_[kAxes];  // of the pixels whose links reach the tile
  int64_t row_ = 0;                    // links in each of their rows
  T origin_ = -kInfinity;
  Buffer<T> weights_;  // [rows][links]: first their scores; 0 where a link is missing
  int64_t channels_ = 0, pitch_ = 0;
  Buffer<T> sums_;  // [tile rows][tile columns and a margin][channels]
};

}  // namespace psal::PSAL_TARGET
PSAL_END_TARGET

#endif  // per-target include guard
