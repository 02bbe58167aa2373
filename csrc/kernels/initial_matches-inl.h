// How a search starts: which keys may be matched, random matches, matches given by the caller.

#if defined(PSAL_KERNELS_INITIAL_MATCHES_INL_H_) == defined(PSAL_TARGET_TOGGLE)
#ifdef PSAL_KERNELS_INITIAL_MATCHES_INL_H_
#undef PSAL_KERNELS_INITIAL_MATCHES_INL_H_
#else
#define PSAL_KERNELS_INITIAL_MATCHES_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "../simd/target.h"
#include "arguments.h"
#include "best_k-inl.h"
#include "buffer-inl.h"
#include "comparison-inl.h"
#include "padded_map-inl.h"
#include "parallel-inl.h"
#include "random-inl.h"

PSAL_BEGIN_TARGET
namespace psal::PSAL_TARGET {

struct Keys {
  Buffer<uint8_t> open;     // by padded number: 1 where a key may be matched; the border never may
  Buffer<int32_t> numbers;  // of those keys, in order
  int64_t count = 0;
};

inline Keys open_keys(const Frame& frame, const bool* mask) {
  Keys keys;
  keys.open = Buffer<uint8_t>(frame.padded.count(), 0);
  keys.numbers = Buffer<int32_t>(frame.shape.count());
  const int64_t width = frame.shape.size[2];
  for (int64_t row = 0; row < frame.shape.rows(); ++row) {
    const int64_t start = frame.row_start(row);
    for (int64_t x = 0; x < width; ++x) {
      if (mask && !mask[row * width + x]) continue;
      keys.open[start + x] = 1;
      keys.numbers[keys.count++] = int32_t(start + x);
    }
  }
  return keys;
}

template <typename T>
inline T sortable(T cost) {
  return std::isnan(cost) ? std::numeric_limits<T>::infinity() : cost;
}

// k different keys for every query: one of each of k strata of the open keys, rotated at random.
template <Similarity S, typename T>
void start_at_random(const Comparison<T>& comparison, const SearchArguments<T>& arguments, const Keys& keys,
                     NeighborField<T>& field) {
  const Frame& frame = comparison.query.frame;
  const int64_t k = arguments.neighbors, width = frame.shape.size[2];
  const Stream rotation(arguments.seed, 0);
  for_ranges(frame.shape.rows(), kRowsPerTask, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      for (int64_t x = 0; x < width; ++x) {
        const int64_t query = row * width + x, number = frame.row_start(row) + x;
        Neighbors<T> own = field[query];
        if (arguments.query_mask && !arguments.query_mask[query]) {
          std::fill_n(own.at, k, -1);
          continue;
        }
        const uint64_t counter = arguments.first_counter + query;
        const int64_t turn = rotation.below(counter, keys.count);
        for (int64_t n = 0; n < k; ++n) {
          const int64_t low = keys.count * n / k, high = keys.count * (n + 1) / k;
          const int64_t at = low + Stream(arguments.seed, n + 1).below(counter, high - low) + turn;
          const int32_t key = keys.numbers[at % keys.count];
          Neighbors<T>{own.at, own.cost, n + 1}.insert(key, sortable(comparison.template cost<S>(number, key)));
        }
      }
  });
}

// Takes over the caller's matches where they are better; numbers that don't fit are passed over.
template <Similarity S, typename T>
void start_at_matches(const Comparison<T>& comparison, const SearchArguments<T>& arguments, const Keys& keys,
                      NeighborField<T>& field) {
  const Frame& frame = comparison.query.frame;
  const int64_t queries = frame.shape.count(), count = arguments.problem.key_shape.count();
  for_ranges(queries, 1024, [&](int64_t begin, int64_t end) {
    for (int64_t query = begin; query < end; ++query) {
      Neighbors<T> own = field[query];
      if (own.at[0] < 0) continue;
      for (int64_t n = 0; n < arguments.init_count; ++n) {
        const int64_t given = arguments.init_index[n * queries + query];
        if (given < 0 || given >= count) continue;
        const int32_t key = int32_t(comparison.key.frame.number(given));
        if (!keys.open[key] || own.has(key)) continue;
        const T cost = comparison.template cost_below<S>(own.worst(), frame.number(query), key);
        if (cost < own.worst()) own.insert(key, cost);
      }
    }
  });
}

}  // namespace psal::PSAL_TARGET
PSAL_END_TARGET

#endif  // per-target include guard
