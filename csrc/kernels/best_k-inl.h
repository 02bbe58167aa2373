// A query's k best, kept sorted: best first, and of equal ones the earlier first.

#if defined(PSAL_KERNELS_BEST_K_INL_H_) == defined(PSAL_TARGET_TOGGLE)
#ifdef PSAL_KERNELS_BEST_K_INL_H_
#undef PSAL_KERNELS_BEST_K_INL_H_
#else
#define PSAL_KERNELS_BEST_K_INL_H_
#endif

#include <cstdint>

#include "../simd/target.h"
#include "buffer-inl.h"

PSAL_BEGIN_TARGET
namespace psal::PSAL_TARGET {

template <typename T>
struct Neighbors {
  int32_t* at;  // padded numbers in the key's map
  T* cost;
  int64_t count;

  T worst() const { return cost[count - 1]; }

  bool has(int32_t number) const {
    bool found = false;
    for (int64_t i = 0; i < count; ++i) found |= at[i] == number;
    return found;
  }

  // For a cost below the worst.
  void insert(int32_t number, T its_cost) {
    at[count - 1] = number;
    cost[count - 1] = its_cost;
    for (int64_t i = count - 1; i > 0; --i) {  // all the way up: nothing to foresee, so nothing to foresee wrongly
      const bool swap = cost[i - 1] > cost[i];
      const int32_t a = at[i - 1], b = at[i];
      const T c = cost[i - 1], d = cost[i];
      at[i - 1] = swap ? b : a;
      at[i] = swap ? a : b;
      cost[i - 1] = swap ? d : c;
      cost[i] = swap ? c : d;
    }
  }
};

// The k best of all queries, by the query's flat number.
template <typename T>
struct NeighborField {
  Buffer<int32_t> at;
  Buffer<T> cost;
  int64_t neighbors;

  NeighborField(int64_t queries, int64_t neighbors_)
      : at(queries * neighbors_), cost(queries * neighbors_), neighbors(neighbors_) {}
  Neighbors<T> operator[](int64_t query) {
    return {at.get() + query * neighbors, cost.get() + query * neighbors, neighbors};
  }
};

}  // namespace psal::PSAL_TARGET
PSAL_END_TARGET

#endif  // per-target include guard
