// What every step of a search reads and improves.

#if defined(PSAL_KERNELS_SEARCH_STATE_INL_H_) == defined(PSAL_TARGET_TOGGLE)
#ifdef PSAL_KERNELS_SEARCH_STATE_INL_H_
#undef PSAL_KERNELS_SEARCH_STATE_INL_H_
#else
#define PSAL_KERNELS_SEARCH_STATE_INL_H_
#endif

#include <cmath>
#include <cstdint>
#include <limits>

#include "../simd/target.h"
#include "arguments.h"
#include "best_k-inl.h"
#include "comparison-inl.h"
#include "valid_keys-inl.h"

PSAL_BEGIN_TARGET
namespace psal::PSAL_TARGET {

// A NaN cannot be sorted: it counts as the worst cost.
template <typename T>
inline T nan_to_infinity(T cost) {
  return std::isnan(cost) ? std::numeric_limits<T>::infinity() : cost;
}

template <Similarity S, typename T>
struct SearchState {
  const SearchArguments<T>& arguments;
  const Comparison<T> comparison;
  const ValidKeys keys;
  NeighborField<T> field;

  bool is_masked(int64_t query) const { return arguments.query_mask && !arguments.query_mask[query]; }

  T cost(int64_t query_padded_index, int32_t key) const {
    return nan_to_infinity(comparison.template cost<S>(query_padded_index, key));
  }

  // Pushes a key if it is better than the worst of a full BestK, which does not contain it yet.
  void push_if_better(int64_t query_padded_index, int32_t key, BestK<T>& best) const {
    const T cost = comparison.template cost_below<S>(best.worst(), query_padded_index, key);
    if (cost < best.worst()) best.push(key, cost);
  }

  // The same for a BestK that may not be full: then every key is welcome.
  void push_if_room_or_better(int64_t query_padded_index, int32_t key, BestK<T>& best) const {
    if (best.full())
      push_if_better(query_padded_index, key, best);
    else
      best.push(key, cost(query_padded_index, key));
  }

  // The same for any padded index around the grid.
  void offer(int64_t query_padded_index, int32_t key, BestK<T>& best) const {
    if (keys.is_valid[key] && !best.contains(key)) push_if_room_or_better(query_padded_index, key, best);
  }
};

}  // namespace psal::PSAL_TARGET
PSAL_END_TARGET

#endif  // per-target include guard
