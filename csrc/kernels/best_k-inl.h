// The k best keys of a query, and of all queries.

#if defined(PSAL_KERNELS_BEST_K_INL_H_) == defined(PSAL_TARGET_TOGGLE)
#ifdef PSAL_KERNELS_BEST_K_INL_H_
#undef PSAL_KERNELS_BEST_K_INL_H_
#else
#define PSAL_KERNELS_BEST_K_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "../simd/target.h"
#include "buffer-inl.h"

PSAL_BEGIN_TARGET
namespace psal::PSAL_TARGET {

// A query's best keys so far, sorted by cost, best first; of equal costs the one pushed first comes first. A view: the
// memory belongs to whoever made it.
template <typename T>
struct BestK {
  int32_t* keys;  // padded indices, [capacity]
  T* costs;       // [capacity]
  int64_t capacity;
  int64_t size;

  bool full() const { return size == capacity; }

  T worst() const { return costs[size - 1]; }

  // Compares with all of them, branchless: k is small.
  bool contains(int32_t key) const {
    bool found = false;
    for (int64_t i = 0; i < size; ++i) found |= keys[i] == key;
    return found;
  }

  // Adds a key; if full, it replaces the worst one, which its cost must undercut.
  void push(int32_t key, T cost) {
    const int64_t last = full() ? size - 1 : size++;
    bool placed = false;
    for (int64_t i = 0; i < last; ++i) {  // branchless, and what is displaced travels on in registers
      const int32_t other_key = keys[i];
      const T other_cost = costs[i];
      placed |= cost < other_cost;
      keys[i] = placed ? key : other_key;
      costs[i] = placed ? cost : other_cost;
      key = placed ? other_key : key;
      cost = placed ? other_cost : cost;
    }
    keys[last] = key;
    costs[last] = cost;
  }

  // A query that query_mask leaves out has no keys.
  void skip() { std::fill_n(keys, capacity, -1); }
  bool skipped() const { return keys[0] < 0; }
};

// The nearest-neighbor field: the k best keys of every query, by the query's index.
template <typename T>
struct NeighborField {
  Buffer<int32_t> keys;  // [N][k], padded indices
  Buffer<T> costs;       // [N][k]
  int64_t neighbors;

  NeighborField(int64_t queries, int64_t neighbors_)
      : keys(queries * neighbors_), costs(queries * neighbors_), neighbors(neighbors_) {}

  BestK<T> operator[](int64_t query) { return best(query, neighbors); }
  BestK<T> emptied(int64_t query) { return best(query, 0); }

 private:
  BestK<T> best(int64_t query, int64_t size) {
    return {.keys = keys.get() + query * neighbors,
            .costs = costs.get() + query * neighbors,
            .capacity = neighbors,
            .size = size};
  }
};

}  // namespace psal::PSAL_TARGET
PSAL_END_TARGET

#endif  // per-target include guard
