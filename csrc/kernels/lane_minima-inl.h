// The smallest of many distances, without a branch per distance: each lane keeps its own.

#if defined(PSAL_KERNELS_LANE_MINIMA_INL_H_) == defined(PSAL_TARGET_TOGGLE)
#ifdef PSAL_KERNELS_LANE_MINIMA_INL_H_
#undef PSAL_KERNELS_LANE_MINIMA_INL_H_
#else
#define PSAL_KERNELS_LANE_MINIMA_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "../simd/lanes-inl.h"
#include "../simd/target.h"

PSAL_BEGIN_TARGET
namespace psal::PSAL_TARGET {

// Each lane keeps its `rows` smallest distances below a bound, and the number of the vector that each came in. The
// smallest of all is always among them, the next ones nearly always: with four times as many lanes as wanted, seldom
// more than one falls into a lane.
class LaneMinima {
 public:
  explicit LaneMinima(int64_t wanted) : rows_(int(std::clamp<int64_t>((wanted + 3) / 4, 1, kMaxRows))) {}

  void clear(float bound) {
    for (int row = 0; row < rows_; ++row) {
      store(distance_[row], broadcast(bound));
      store(vector_[row], broadcast(-1));
    }
  }

  void push(Lanes<float> distance, int32_t vector) {
    Lanes<int32_t> from = broadcast(vector);
    for (int row = 0; row < rows_; ++row) {
      const Lanes<float> other = load(distance_[row]);
      const Lanes<int32_t> other_from = load(vector_[row]);
      const Bits<float> is_smaller = distance < other;
      store(distance_[row], select<float>(is_smaller, distance, other));
      store(vector_[row], select<int32_t>(is_smaller, from, other_from));
      distance = select<float>(is_smaller, other, distance);
      from = select<int32_t>(is_smaller, other_from, from);
    }
  }

  // Calls body(distance, vector, lane) for all that are below limit(), which body() may lower.
  template <typename Limit, typename Body>
  void for_each(const Limit& limit, const Body& body) const {
    for (int row = 0; row < rows_; ++row)
      for (uint32_t below = lanes_below(load(distance_[row]), limit()); below; below &= below - 1) {
        const int lane = __builtin_ctz(below);
        if (distance_[row][lane] < limit()) body(distance_[row][lane], vector_[row][lane], lane);
      }
  }

 private:
  static constexpr int kMaxRows = 8;

  int rows_;
  alignas(64) float distance_[kMaxRows][kWidth<float>];
  alignas(64) int32_t vector_[kMaxRows][kWidth<float>];
};

}  // namespace psal::PSAL_TARGET
PSAL_END_TARGET

#endif  // per-target include guard
