// First matches of a search without a tree: random ones, and those given by the caller.

#if defined(PSAL_KERNELS_INITIAL_MATCHES_INL_H_) == defined(PSAL_TARGET_TOGGLE)
#ifdef PSAL_KERNELS_INITIAL_MATCHES_INL_H_
#undef PSAL_KERNELS_INITIAL_MATCHES_INL_H_
#else
#define PSAL_KERNELS_INITIAL_MATCHES_INL_H_
#endif

#include <cstdint>

#include "../simd/target.h"
#include "arguments.h"
#include "best_k-inl.h"
#include "padded_grid-inl.h"
#include "parallel-inl.h"
#include "random-inl.h"
#include "search_state-inl.h"
#include "tuning.h"

PSAL_BEGIN_TARGET
namespace psal::PSAL_TARGET {

// k different keys for every query: one random key of each of k strata of the valid keys, all rotated by the same
// random amount. Random streams 0 to k are used up.
template <Similarity S, typename T>
void start_at_random(SearchState<S, T>& state) {
  const SearchArguments<T>& arguments = state.arguments;
  const PaddedGrid& grid = state.comparison.query.grid;
  const int64_t k = arguments.neighbors, width = grid.shape.size[2], key_count = state.keys.count;
  const Stream rotations(arguments.seed, 0);
  for_ranges(grid.shape.rows(), kRowsPerTask, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      for (int64_t x = 0; x < width; ++x) {
        const int64_t query = row * width + x;
        BestK<T> best = state.field.emptied(query);
        if (state.is_masked(query)) {
          best.skip();
          continue;
        }
        const uint64_t counter = arguments.first_counter + query;
        const int64_t rotation = rotations.below(counter, key_count);
        for (int64_t n = 0; n < k; ++n) {
          const int64_t low = key_count * n / k, high = key_count * (n + 1) / k;
          const int64_t drawn = low + Stream(arguments.seed, n + 1).below(counter, high - low) + rotation;
          const int32_t key = state.keys.padded_indices[drawn % key_count];
          best.push(key, state.cost(grid.row_start(row) + x, key));
        }
      }
  });
}

// Improves them by the caller's matches; indices out of range and keys that are not valid are skipped.
template <Similarity S, typename T>
void improve_by_given_matches(SearchState<S, T>& state) {
  const SearchArguments<T>& arguments = state.arguments;
  const PaddedGrid &queries = state.comparison.query.grid, &keys = state.comparison.key.grid;
  const int64_t query_count = queries.shape.count(), key_count = keys.shape.count();
  for_ranges(query_count, kQueriesPerTask, [&](int64_t begin, int64_t end) {
    for (int64_t query = begin; query < end; ++query) {
      BestK<T> best = state.field[query];
      if (best.skipped()) continue;
      for (int64_t n = 0; n < arguments.init_count; ++n) {
        const int64_t given = arguments.init_index[n * query_count + query];
        if (given < 0 || given >= key_count) continue;
        state.offer(queries.padded_index(query), int32_t(keys.padded_index(given)), best);
      }
    }
  });
}

}  // namespace psal::PSAL_TARGET
PSAL_END_TARGET

#endif  // per-target include guard
