// The whole search of one batch element.

#if defined(PSAL_KERNELS_SEARCH_INL_H_) == defined(PSAL_TARGET_TOGGLE)
#ifdef PSAL_KERNELS_SEARCH_INL_H_
#undef PSAL_KERNELS_SEARCH_INL_H_
#else
#define PSAL_KERNELS_SEARCH_INL_H_
#endif

#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "../simd/target.h"
#include "arguments.h"
#include "best_k-inl.h"
#include "buffer-inl.h"
#include "comparison-inl.h"
#include "initial_matches-inl.h"
#include "jump_flooding-inl.h"
#include "padded_grid-inl.h"
#include "parallel-inl.h"
#include "search_state-inl.h"
#include "sweep-inl.h"
#include "tree_seeds-inl.h"
#include "tuning.h"
#include "valid_keys-inl.h"
#include "with_similarity-inl.h"

PSAL_BEGIN_TARGET
namespace psal::PSAL_TARGET {

// From padded indices and costs to the user's indices and scores.
template <Similarity S, typename T>
void write_matches(SearchState<S, T>& state) {
  const SearchArguments<T>& arguments = state.arguments;
  const PaddedGrid &queries = state.comparison.query.grid, &keys = state.comparison.key.grid;
  const int64_t count = queries.shape.count(), k = arguments.neighbors;
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  Buffer<T> norms;
  if constexpr (S == Similarity::cosine) norms = inverse_norms(state.comparison.query, arguments.problem.patch);
  for_ranges(count, kQueriesPerTask, [&](int64_t begin, int64_t end) {
    for (int64_t query = begin; query < end; ++query) {
      const BestK<T> best = state.field[query];
      const int64_t padded_index = queries.padded_index(query);
      const auto final_cost = [&](T cost) { return S == Similarity::cosine ? cost * norms[padded_index] : cost; };
      if (S == Similarity::cosine && !best.skipped()) {
        // The search left out the query's norm. If it overflows, the products with it are NaN: sort again, NaNs last.
        // `sorted` overwrites `best` in place, never ahead of the entry being read.
        BestK<T> sorted = state.field.emptied(query);
        for (int64_t n = 0; n < k; ++n) sorted.push(best.keys[n], nan_to_infinity(final_cost(best.costs[n])));
      }
      for (int64_t n = 0; n < k; ++n) {
        int64_t& index = arguments.index[n * count + query];
        T& score = arguments.score[n * count + query];
        index = best.skipped() ? -1 : keys.index(best.keys[n]);
        score = -best.costs[n];
        if (best.skipped())
          score = -kInfinity;
        else if (best.costs[n] == kInfinity)  // it may stand for a NaN
          score = -final_cost(state.comparison.template cost<S>(padded_index, best.keys[n]));
      }
    }
  });
}

template <Similarity S, typename T>
void search_with(const SearchArguments<T>& arguments) {
  const Problem<T>& problem = arguments.problem;
  PaddedMap<T> key = key_map(problem);
  ValidKeys keys(key.grid, arguments.key_mask);
  if (keys.count < arguments.neighbors)
    throw std::runtime_error("psal: neighbors must not exceed the " + std::to_string(keys.count) +
                             " keys that key_mask leaves, got " + std::to_string(arguments.neighbors));
  std::unique_ptr<TreeSeeds<T>> seeds;  // before the query's map exists: building the tree takes the most memory
  if (arguments.init == Init::tree) seeds = std::make_unique<TreeSeeds<T>>(key, problem, keys, arguments.neighbors);
  SearchState<S, T> state = {
      .arguments = arguments,
      .comparison = Comparison<T>(problem, query_map(problem), std::move(key)),
      .keys = std::move(keys),
      .field = NeighborField<T>(problem.query_shape.count(), arguments.neighbors),
  };
  if (arguments.init != Init::tree) {
    start_at_random(state);
    if (arguments.init_index) improve_by_given_matches(state);
  }
  if (arguments.init == Init::random) {
    JumpFlooding<S, T>(state).run();
  } else {
    Sweep<S, T> sweep(state);
    if (seeds) sweep.seed(*seeds);
    seeds.reset();
    for (int64_t i = 0; i < arguments.iterations; ++i) sweep.run(i);
  }
  write_matches(state);
}

template <typename T>
void search(const SearchArguments<T>& arguments) {
  with_similarity(arguments.problem.similarity, [&](auto similarity) { search_with<similarity>(arguments); });
}

}  // namespace psal::PSAL_TARGET
PSAL_END_TARGET

#endif  // per-target include guard
