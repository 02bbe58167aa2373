// Matches as weighted links between queries and keys, and sums over them. Attention, aggregation and all gradients are
// such sums: over the links of the queries in a window, or over the links that lead to the keys in a window.

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
#include "tuning.h"

PSAL_BEGIN_TARGET
namespace psal::PSAL_TARGET {

inline int64_t checked(int64_t index, int64_t keys) {
  if (index >= keys)
    throw std::runtime_error("psal: matches.index must be below the number of keys, " + std::to_string(keys) +
                             ", got " + std::to_string(index));
  return index;
}

// Links sorted by query: link n of query i is at i · k + n.
//
// The far end of a link is stored as its padded index minus the query's column. A query moved to column x along with
// its link then leads to far_end + x, whichever column it came from, so a whole row of a window shares one shift.
template <typename T>
struct Links {
  Buffer<int32_t> far_end;
  Buffer<T> weight;
  int64_t neighbors;

  Links(int64_t queries, int64_t neighbors_)
      : far_end(queries * neighbors_), weight(queries * neighbors_), neighbors(neighbors_) {}

  // Calls weight_of(match, key's padded index, query) for every match, where `match` is its offset in the [k, N]
  // tensors. Missing matches (index −1) get the weight `missing`.
  template <typename Weight>
  void fill(const int64_t* index, const PaddedGrid& queries, const PaddedGrid& keys, T missing,
            const Weight& weight_of) {
    const int64_t width = queries.shape.size[2], query_count = queries.shape.count(), key_count = keys.shape.count();
    for_ranges(queries.shape.rows(), kRowsPerTask, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row)
        for (int64_t x = 0; x < width; ++x) {
          const int64_t query = row * width + x;
          for (int64_t n = 0; n < neighbors; ++n) {
            const int64_t match = n * query_count + query, link = query * neighbors + n;
            const int64_t key = checked(index[match], key_count);
            const int64_t padded_index = key < 0 ? keys.origin : keys.padded_index(key);
            far_end[link] = int32_t(padded_index - x);
            weight[link] = key < 0 ? missing : weight_of(match, padded_index, query);
          }
        }
    });
  }

  int64_t first(int64_t query) const { return query * neighbors; }
};

// The same links sorted by key, and of one key by query, in CSR form: those of key j are [start[j], start[j + 1]).
// The far end is the query's padded index minus the key's column.
template <typename T>
struct LinksByKey {
  Buffer<int32_t> start;
  Buffer<int32_t> far_end;
  Buffer<T> weight;

  LinksByKey(const int64_t* index, const Links<T>& links, const PaddedGrid& queries, const PaddedGrid& keys)
      : start(keys.shape.count() + 2, 0), far_end(links.far_end.size()), weight(links.far_end.size()) {
    const int64_t query_count = queries.shape.count(), k = links.neighbors;
    const uint32_t width = uint32_t(keys.shape.size[2]);
    // Counting sort into CSR offsets. Counts are kept two entries further on, so that after the prefix sum start[j + 1]
    // is where key j begins; filling advances it to where key j + 1 begins, which is what it has to be.
    for (int64_t match = 0; match < query_count * k; ++match)
      if (index[match] >= 0) ++start[index[match] + 2];
    for (int64_t j = 2; j < start.size(); ++j) start[j] += start[j - 1];
    for (int64_t query = 0; query < query_count; ++query) {
      const int32_t padded_index = int32_t(queries.padded_index(query));
      for (int64_t n = 0; n < k; ++n) {
        const int64_t key = index[n * query_count + query];
        if (key < 0) continue;
        const int32_t to = start[key + 1]++;
        far_end[to] = padded_index - int32_t(uint32_t(key) % width);
        weight[to] = links.weight[query * k + n];
      }
    }
  }

  int64_t first(int64_t key) const { return start[key]; }
};

// Calls body(first, last, shift) for each row of the window around `center`: its links are [first, last), and link e
// moved to the center leads to far_end[e] + shift in the grid `to`.
template <typename AnyLinks, typename Body>
inline void for_window(const AnyLinks& links, const Coordinates& center, const Patch& patch, const Shape& grid,
                       const PaddedGrid& to, const Body& body) {
  int64_t low[kAxes], high[kAxes];
  for (int axis = 0; axis < kAxes; ++axis) {
    low[axis] = std::max<int64_t>(0, center[axis] - patch.radius(axis));
    high[axis] = std::min(grid.size[axis], center[axis] + patch.radius(axis) + 1);
  }
  if (low[2] >= high[2]) return;
  for (int64_t z = low[0]; z < high[0]; ++z)
    for (int64_t y = low[1]; y < high[1]; ++y) {
      const int64_t row = (z * grid.size[1] + y) * grid.size[2];
      const int64_t shift = (center[0] - z) * to.stride[0] + (center[1] - y) * to.stride[1] + center[2];
      body(links.first(row + low[2]), links.first(row + high[2]), shift);
    }
}

// sum[c] += Σ weight · map[padded_index][c] over terms, for one vector of channels c that starts at `base`. There are
// four accumulators, so that additions overlap.
template <typename T>
inline void add_terms(const T* base, int64_t channels, const int32_t* padded_index, const T* weight, int64_t count,
                      Lanes<T> (&sum)[4]) {
  int64_t i = 0;
  for (; i + 4 <= count; i += 4)
    for (int j = 0; j < 4; ++j) sum[j] += weight[i + j] * load(base + padded_index[i + j] * channels);
  for (; i < count; ++i) sum[i % 4] += weight[i] * load(base + padded_index[i] * channels);
}

// total[c] += sum[c] for the first `channels` lanes at most.
template <typename T>
inline void add_lanes(T* total, int64_t channels, const Lanes<T> (&sum)[4]) {
  const Lanes<T> all = (sum[0] + sum[1]) + (sum[2] + sum[3]);
  if (channels >= kWidth<T>)
    store(total, load(total) + all);
  else
    for (int64_t lane = 0; lane < channels; ++lane) total[lane] += all[lane];
}

// Terms of a sum over pixels, buffered so that their weights can be computed with whole vectors.
template <typename T>
struct Terms {
  int32_t padded_index[kTermCapacity];
  alignas(64) T weight[kTermCapacity + kWidth<T>];
  int64_t size = 0;

  // Calls fill(first, last) for parts of a range that fit, and flush() whenever the buffer is full.
  template <typename Fill, typename Flush>
  void add(int64_t first, int64_t last, const Fill& fill, const Flush& flush) {
    while (first < last) {
      if (size == kTermCapacity) flush();
      const int64_t end = std::min(last, first + kTermCapacity - size);
      fill(first, end);
      size += end - first;
      first = end;
    }
  }

  // total[c] += Σ weight · map[padded_index][c].
  void add_to(const PaddedMap<T>& map, T* total) const {
    for (int64_t channel = 0; channel < map.channels; channel += kWidth<T>) {
      Lanes<T> sum[4] = {};
      add_terms(map.data.get() + channel, map.channels, padded_index, weight, size, sum);
      add_lanes(total + channel, map.channels - channel, sum);
    }
  }
};

}  // namespace psal::PSAL_TARGET
PSAL_END_TARGET

#endif  // per-target include guard
