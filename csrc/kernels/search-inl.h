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

#include "../simd/target.h"
#include "arguments.h"
#include "best_k-inl.h"
#include "buffer-inl.h"
#include "comparison-inl.h"
#include "initial_matches-inl.h"
#include "jump_flooding-inl.h"
#include "padded_map-inl.h"
#include "parallel-inl.h"
#include "sweep-inl.h"
#include "tree_seeds-inl.h"

PSAL_BEGIN_TARGET
namespace psal::PSAL_TARGET {

template <Similarity S, typename T>
void write_matches(const Comparison<T>& comparison, const SearchArguments<T>& arguments, NeighborField<T>& field) {
  const Problem<T>& problem = arguments.problem;
  const Frame &queries = comparison.query.frame, &keys = comparison.key.frame;
  const int64_t count = queries.shape.count(), k = arguments.neighbors;
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  Buffer<T> norms;
  if constexpr (S == Similarity::cosine) norms = inverse_norms(comparison.query, problem.patch);
  for_ranges(count, 1024, [&](int64_t begin, int64_t end) {
    for (int64_t query = begin; query < end; ++query) {
      const Neighbors<T> own = field[query];
      const int64_t number = queries.number(query);
      const auto final_cost = [&](T cost) { return S == Similarity::cosine ? cost * norms[number] : cost; };
      if (S == Similarity::cosine && own.at[0] >= 0)  // a norm may overflow, and what is then no number goes last
        for (int64_t n = 0; n < k; ++n)
          Neighbors<T>{own.at, own.cost, n + 1}.insert(own.at[n], sortable(final_cost(own.cost[n])));
      for (int64_t n = 0; n < k; ++n) {
        int64_t& index = arguments.index[n * count + query];
        T& score = arguments.score[n * count + query];
        index = own.at[0] < 0 ? -1 : keys.flat(own.at[n]);
        score = -own.cost[n];
        if (own.at[0] < 0)
          score = -kInfinity;
        else if (own.cost[n] == kInfinity)
          score = -final_cost(comparison.template cost<S>(number, own.at[n]));
      }
    }
  });
}

template <Similarity S, typename T>
void search_for(const SearchArguments<T>& arguments) {
  const Problem<T>& problem = arguments.problem;
  Comparison<T> comparison(problem);
  const Keys keys = open_keys(comparison.key.frame, arguments.key_mask);
  if (keys.count < arguments.neighbors)
    throw std::runtime_error("psal: neighbors must not exceed the " + std::to_string(keys.count) +
                             " keys that key_mask leaves, got " + std::to_string(arguments.neighbors));
  std::unique_ptr<Seeds<T>> seeds;
  if (arguments.init == Init::tree) seeds = std::make_unique<Seeds<T>>(comparison, problem, keys, arguments.neighbors);
  comparison.make_query();
  NeighborField<T> field(problem.query_shape.count(), arguments.neighbors);
  if (seeds) {
    seeds->describe_queries(comparison.query, problem);
    Sweep<S, T> sweep(comparison, arguments, keys, field);
    sweep.seed(*seeds);
    seeds.reset();
    for (int64_t i = 0; i < arguments.iterations; ++i) sweep.turn(i);
  } else {
    start_at_random<S>(comparison, arguments, keys, field);
    if (arguments.init_index) start_at_matches<S>(comparison, arguments, keys, field);
    if (arguments.init == Init::random) {
      JumpFlooding<S, T>(comparison, arguments, keys, field).run();
    } else {
      Sweep<S, T> sweep(comparison, arguments, keys, field);
      for (int64_t i = 0; i < arguments.iterations; ++i) sweep.turn(i);
    }
  }
  write_matches<S>(comparison, arguments, field);
}

template <typename T>
void search(const SearchArguments<T>& arguments) {
  switch (arguments.problem.similarity) {
    case Similarity::l2: return search_for<Similarity::l2>(arguments);
    case Similarity::dot: return search_for<Similarity::dot>(arguments);
    case Similarity::cosine: return search_for<Similarity::cosine>(arguments);
  }
}

}  // namespace psal::PSAL_TARGET
PSAL_END_TARGET

#endif  // per-target include guard
