// Random keys for the pixels at the border of the map. Half of such a patch is padding, so it resembles patches at the
// same border of the key's map and few others. Sweeps seldom lead there from inside, and descriptors do not tell them
// apart: their components are those of the whole map.

#if defined(PSAL_KERNELS_BORDER_KEYS_INL_H_) == defined(PSAL_TARGET_TOGGLE)
#ifdef PSAL_KERNELS_BORDER_KEYS_INL_H_
#undef PSAL_KERNELS_BORDER_KEYS_INL_H_
#else
#define PSAL_KERNELS_BORDER_KEYS_INL_H_
#endif

#include <cstdint>

#include "../simd/target.h"
#include "arguments.h"
#include "padded_grid-inl.h"
#include "random-inl.h"
#include "tuning.h"

PSAL_BEGIN_TARGET
namespace psal::PSAL_TARGET {

class BorderKeys {
 public:
  BorderKeys(const Shape& query_shape, const PaddedGrid& keys, uint64_t seed)
      : query_shape_(query_shape), keys_(keys), seed_(seed) {}

  bool is_at_border(const Coordinates& query) const {
    for (int axis = 0; axis < kAxes; ++axis)
      if (has_border(axis) && (is_first(query, axis) || is_last(query, axis))) return true;
    return false;
  }

  // Calls offer(key) for random keys of the border that the query is at; they may be masked.
  template <typename Offer>
  void draw(const Coordinates& query, uint64_t counter, const Offer& offer) const {
    for (int64_t n = 0; n < kBorderDraws; ++n) {
      int64_t key = keys_.origin;
      for (int axis = 0; axis < kAxes; ++axis) key += coordinate(query, counter, n, axis) * keys_.stride[axis];
      offer(int32_t(key));
    }
  }

 private:
  static constexpr int64_t kFirstStream = int64_t(1) << 30;  // of the random numbers; those below belong to the sweeps
  static constexpr int64_t kMinSide = 32;                    // along shorter axes, nothing is drawn

  bool has_border(int axis) const { return query_shape_.size[axis] >= kMinSide; }
  bool is_first(const Coordinates& query, int axis) const { return query[axis] == 0; }
  bool is_last(const Coordinates& query, int axis) const { return query[axis] == query_shape_.size[axis] - 1; }

  // Of draw n along an axis.
  int64_t coordinate(const Coordinates& query, uint64_t counter, int64_t n, int axis) const {
    const int64_t size = keys_.shape.size[axis];
    if (has_border(axis) && is_first(query, axis)) return 0;
    if (has_border(axis) && is_last(query, axis)) return size - 1;
    return size == 1 ? 0 : Stream(seed_, kFirstStream + n * kAxes + axis).below(counter, size);
  }

  const Shape query_shape_;
  const PaddedGrid& keys_;
  const uint64_t seed_;
};

}  // namespace psal::PSAL_TARGET
PSAL_END_TARGET

#endif  // per-target include guard
