// Scores of given matches.

#if defined(PSAL_KERNELS_SCORE_INL_H_) == defined(PSAL_TARGET_TOGGLE)
#ifdef PSAL_KERNELS_SCORE_INL_H_
#undef PSAL_KERNELS_SCORE_INL_H_
#else
#define PSAL_KERNELS_SCORE_INL_H_
#endif

#include <cstdint>
#include <limits>

#include "../simd/target.h"
#include "arguments.h"
#include "buffer-inl.h"
#include "comparison-inl.h"
#include "links-inl.h"
#include "parallel-inl.h"
#include "tuning.h"
#include "with_similarity-inl.h"

PSAL_BEGIN_TARGET
namespace psal::PSAL_TARGET {

template <Similarity S, typename T>
void score_with(const ScoreArguments<T>& arguments) {
  const Problem<T>& problem = arguments.problem;
  const Comparison<T> comparison(problem, query_map(problem), key_map(problem));
  Buffer<T> norms;
  if constexpr (S == Similarity::cosine) norms = inverse_norms(comparison.query, problem.patch);
  const int64_t query_count = problem.query_shape.count(), key_count = problem.key_shape.count();
  for_ranges(query_count, kQueriesPerTask, [&](int64_t begin, int64_t end) {
    for (int64_t n = 0; n < arguments.neighbors; ++n)
      for (int64_t query = begin; query < end; ++query) {
        const int64_t key = checked(arguments.index[n * query_count + query], key_count);
        const int64_t padded_index = comparison.query.grid.padded_index(query);
        T& score = arguments.score[n * query_count + query];
        score = -std::numeric_limits<T>::infinity();
        if (key < 0) continue;
        score = -comparison.template cost<S>(padded_index, comparison.key.grid.padded_index(key));
        if constexpr (S == Similarity::cosine) score *= norms[padded_index];
      }
  });
}

template <typename T>
void score(const ScoreArguments<T>& arguments) {
  with_similarity(arguments.problem.similarity, [&](auto similarity) { score_with<similarity>(arguments); });
}

}  // namespace psal::PSAL_TARGET
PSAL_END_TARGET

#endif  // per-target include guard
