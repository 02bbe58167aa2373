// Matches as weighted links between a query's pixel and a key's, and sums over them. Attention, aggregation and all
// gradients are such sums: over the links of the pixels around a query (forward ones), or over those that arrive
// around a key (backward ones).

#if defined(PSAL_KERNELS_LINKS_INL_H_) == defined(PSAL_TARGET_TOGGLE)
#ifdef PSAL_KERNELS_LINKS_INL_H_
#undef PSAL_KERNELS_LINKS_INL_H_
#else
#define PSAL_KERNELS_LINKS_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "../simd/lanes-inl.h"
#include "../simd/target.h"
#include "arguments.h"
#include "buffer-inl.h"
#include "padded_map-inl.h"
#include "parallel-inl.h"

PSAL_BEGIN_TARGET
namespace psal::PSAL_TARGET {

inline int64_t checked(int64_t index, int64_t keys) {
  if (index >= keys)
    throw std::runtime_error("psal: matches.index must be below the number of keys, " + std::to_string(keys) +
                             ", got " + std::to_string(index));
  return index;
}

// Link n of query i at place i · k + n: where it leads, as a padded number less the query's column, and its weight.
// Moved along with its query to a pixel in column x, a link leads to at + x: the same for a whole row of them.
template <typename T>
struct Links {
  Buffer<int32_t> at;
  Buffer<T> weight;
  int64_t neighbors;

  Links(int64_t queries, int64_t neighbors_)
      : at(queries * neighbors_), weight(queries * neighbors_), neighbors(neighbors_) {}

  // weight_of(place in index, number of the key, i) is called for every link there is; others get `absent`.
  template <typename Weight>
  void fill(const int64_t* index, const Frame& queries, const Frame& keys, T absent, const Weight& weight_of) {
    const int64_t width = queries.shape.size[2], count = queries.shape.count(), all = keys.shape.count();
    for_ranges(queries.shape.rows(), kRowsPerTask, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row)
        for (int64_t x = 0; x < width; ++x) {
          const int64_t i = row * width + x;
          for (int64_t n = 0; n < neighbors; ++n) {
            const int64_t key = checked(index[n * count + i], all);
            const int64_t number = key < 0 ? keys.origin : keys.number(key);
            at[i * neighbors + n] = int32_t(number - x);
            weight[i * neighbors + n] = key < 0 ? absent : weight_of(n * count + i, number, i);
          }
        }
    });
  }

  int64_t first(int64_t query) const { return query * neighbors; }
};

// The links that arrive at each key, ordered by query: where each comes from, less the key's column.
template <typename T>
struct Arrivals {
  Buffer<int32_t> start;
  Buffer<int32_t> at;
  Buffer<T> weight;

  Arrivals(const int64_t* index, const Links<T>& links, const Frame& queries, const Frame& keys)
      : start(keys.shape.count() + 2, 0), at(links.at.size()), weight(links.at.size()) {
    const int64_t count = queries.shape.count(), k = links.neighbors, width = uint32_t(keys.shape.size[2]);
    // Counted two places on, summed, and filled one place on: then each start has moved to where it belongs.
    for (int64_t place = 0; place < count * k; ++place)
      if (index[place] >= 0) ++start[index[place] + 2];
    for (int64_t j = 2; j < start.size(); ++j) start[j] += start[j - 1];
    for (int64_t i = 0; i < count; ++i) {
      const int32_t number = int32_t(queries.number(i));
      for (int64_t n = 0; n < k; ++n) {
        const int64_t key = index[n * count + i];
        if (key < 0) continue;
        const int32_t to = start[key + 1]++;
        at[to] = number - int32_t(uint32_t(key) % uint32_t(width));
        weight[to] = links.weight[i * k + n];
      }
    }
  }

  int64_t first(int64_t key) const { return start[key]; }
};

// The links of the window around `centre`, row by row: body(first, last, shift), where link e of the row, moved to
// the centre, leads to at[e] + shift in the frame `to`.
template <typename Entries, typename Body>
inline void for_window(const Entries& entries, const int64_t (&centre)[kAxes], const Patch& patch, const Shape& grid,
                       const Frame& to, const Body& body) {
  int64_t low[kAxes], high[kAxes];
  for (int axis = 0; axis < kAxes; ++axis) {
    low[axis] = std::max<int64_t>(0, centre[axis] - patch.radius(axis));
    high[axis] = std::min(grid.size[axis], centre[axis] + patch.radius(axis) + 1);
  }
  if (low[2] >= high[2]) return;
  for (int64_t z = low[0]; z < high[0]; ++z)
    for (int64_t y = low[1]; y < high[1]; ++y) {
      const int64_t row = (z * grid.size[1] + y) * grid.size[2];
      const int64_t shift = (centre[0] - z) * to.stride[0] + (centre[1] - y) * to.stride[1] + centre[2];
      body(entries.first(row + low[2]), entries.first(row + high[2]), shift);
    }
}

// sum[c] += Σ weight · map[at][c] over a row of terms, for the lanes of channels that start at base.
template <typename T>
inline void add_terms(const T* base, int64_t channels, const int32_t* at, const T* weight, int64_t count,
                      Lanes<T> (&sum)[4]) {
  int64_t i = 0;
  for (; i + 4 <= count; i += 4)
    for (int j = 0; j < 4; ++j) sum[j] += weight[i + j] * load(base + at[i + j] * channels);
  for (; i < count; ++i) sum[i % 4] += weight[i] * load(base + at[i] * channels);
}

// total[c] += sum[c], as many as there are channels.
template <typename T>
inline void add_lanes(T* total, int64_t channels, const Lanes<T> (&sum)[4]) {
  const Lanes<T> all = (sum[0] + sum[1]) + (sum[2] + sum[3]);
  if (channels >= kWidth<T>)
    store(total, load(total) + all);
  else
    for (int64_t lane = 0; lane < channels; ++lane) total[lane] += all[lane];
}

// Terms of a sum, collected so that they can be worked on many at once.
template <typename T>
struct Terms {
  static constexpr int64_t kCapacity = 1024;
  int32_t at[kCapacity];
  alignas(64) T weight[kCapacity + kWidth<T>];
  int64_t count = 0;

  // Calls fill(first, last) for parts that fit, and flush whenever the terms are full.
  template <typename Fill, typename Flush>
  void add(int64_t first, int64_t last, const Fill& fill, const Flush& flush) {
    while (first < last) {
      if (count == kCapacity) flush();
      const int64_t end = std::min(last, first + kCapacity - count);
      fill(first, end);
      count += end - first;
      first = end;
    }
  }

  void add_to(const PaddedMap<T>& map, T* total) const {
    for (int64_t channel = 0; channel < map.channels; channel += kWidth<T>) {
      Lanes<T> sum[4] = {};
      add_terms(map.data.get() + channel, map.channels, at, weight, count, sum);
      add_lanes(total + channel, map.channels - channel, sum);
    }
  }
};

}  // namespace psal::PSAL_TARGET
PSAL_END_TARGET

#endif  // per-target include guard
