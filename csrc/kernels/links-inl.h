// Matches as weighted links between queries and keys, and sums over them. Attention, aggregation and all gradients are
// such sums: over the links of the queries in a window, or over the links that lead to the keys in a window.

#if defined(PSAL_KERNELS_LINKS_INL_H_) == defined(PSAL_TARGET_TOGGLE)
#ifdef PSAL_KERNELS_LINKS_INL_H_
#undef PSAL_KERNELS_LINKS_INL_H_
#else
#define PSAL_KERNELS_LINKS_INL_H_
#endif

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
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

// Links sorted by query: link n of query i is at i · k + n. Where index is −1, the link is missing.
//
// The far end of a link is stored as its padded index minus the query's column. A query moved to column x along with
// its link then leads to far_end + x, whichever column it came from, so a whole row of a window shares one shift.
template <typename T>
struct Links {
  static constexpr int32_t kMissing = std::numeric_limits<int32_t>::min();  // as a far end

  Buffer<int32_t> far_end;
  Buffer<T> weight;
  int64_t neighbors;
  std::atomic<bool> any_missing = false;

  Links(int64_t queries, int64_t neighbors_)
      : far_end(queries * neighbors_), weight(queries * neighbors_), neighbors(neighbors_) {
    if (queries * neighbors > std::numeric_limits<int32_t>::max())
      throw std::runtime_error("psal: there must be fewer than 2^31 matches");
  }

  // Calls weight_of(match, key's padded index, query) for every match, where `match` is its offset in the [k, N]
  // tensors.
  template <typename Weight>
  void fill(const int64_t* index, const PaddedGrid& queries, const PaddedGrid& keys, const Weight& weight_of) {
    const int64_t width = queries.shape.size[2], query_count = queries.shape.count(), key_count = keys.shape.count();
    for_ranges(queries.shape.rows(), kRowsPerTask, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row)
        for (int64_t x = 0; x < width; ++x) {
          const int64_t query = row * width + x;
          for (int64_t n = 0; n < neighbors; ++n) {
            const int64_t match = n * query_count + query, link = query * neighbors + n;
            const int64_t key = checked(index[match], key_count);
            if (key < 0) {
              any_missing.store(true, std::memory_order_relaxed);
              far_end[link] = kMissing;
              weight[link] = 0;
              continue;
            }
            const int64_t padded_index = keys.padded_index(key);
            far_end[link] = int32_t(padded_index - x);
            weight[link] = weight_of(match, padded_index, query);
          }
        }
    });
  }

  bool is_missing(int64_t link) const { return far_end[link] == kMissing; }

  void release() {
    far_end.release();
    weight.release();
  }

  int64_t first(int64_t query) const { return query * neighbors; }

  // Calls body(begin, end) for the parts of [first, last) without missing links.
  template <typename Body>
  void for_present(int64_t first, int64_t last, const Body& body) const {
    if (!any_missing.load(std::memory_order_relaxed)) return body(first, last);
    while (first < last) {
      while (first < last && is_missing(first)) ++first;
      int64_t end = first;
      while (end < last && !is_missing(end)) ++end;
      if (first < end) body(first, end);
      first = end;
    }
  }
};

// The same links sorted by key, and of one key by query, in CSR form: those of key j are [start[j], start[j + 1]).
// The far end is the query's padded index minus the key's column.
template <typename T>
struct LinksByKey {
  Buffer<int32_t> start;
  Buffer<int32_t> far_end;
  Buffer<T> weight;
  Buffer<int32_t> match;  // offset in the [k, N] tensors; empty unless asked for

  LinksByKey(const int64_t* index, const Links<T>& links, const PaddedGrid& queries, const PaddedGrid& keys,
             bool with_match = false)
      : start(keys.shape.count() + 2, 0),
        far_end(links.far_end.size()),
        weight(links.far_end.size()),
        match(with_match ? links.far_end.size() : 0) {
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
        if (with_match) match[to] = int32_t(n * query_count + query);
      }
    }
  }

  int64_t first(int64_t key) const { return start[key]; }

  int64_t size() const { return start[start.size() - 2]; }

  static bool is_missing(int64_t) { return false; }
};

// Calls body(first, last, shift) for the rows of the window around `center`: [first, last) are links, none of them
// missing, and link e moved to the center leads to far_end[e] + shift in the grid `to`.
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
      links.for_present(links.first(row + low[2]), links.first(row + high[2]),
                        [&](int64_t first, int64_t last) { body(first, last, shift); });
    }
}

// sum[c] += Σ weight · map[padded_index][c] over terms, for one vector of channels c that starts at `base`. There are
// four accumulators, so that additions overlap.
template <typename T>
inline void add_terms(const T* base, int64_t channels, const int32_t* padded_index, const T* weight, int64_t count,
                      Lanes<T> (&sum)[4]) {
  const auto term = [&](int64_t i) { return weight[i] * load(base + padded_index[i] * channels); };
  int64_t i = 0;
  for (; i + 4 <= count; i += 4)
    for (int j = 0; j < 4; ++j) sum[j] += term(i + j);
  for (; i < count; ++i) sum[0] += term(i);  // with a varying index, the sums would not stay in registers
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
  int32_t padded_index[kTermCapacity + 1];  // a term that does not exist may be written behind the last one
  alignas(64) T weight[kTermCapacity + kWidth<T>];
  int64_t size = 0;

  // Sets a term, and returns whether it `exists`: if not, the next one takes its place. So there are no branches.
  bool put(int64_t at, int32_t padded_index_, T weight_, bool exists) {
    padded_index[at] = padded_index_;
    weight[at] = weight_;
    return exists;
  }

  // Calls push_terms(begin, end) for parts of [first, last) that fit, and flush() whenever the buffer is full.
  template <typename PushTerms, typename Flush>
  void add(int64_t first, int64_t last, const PushTerms& push_terms, const Flush& flush) {
    while (first < last) {
      if (size == kTermCapacity) flush();
      const int64_t end = std::min(last, first + kTermCapacity - size);
      push_terms(first, end);
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
