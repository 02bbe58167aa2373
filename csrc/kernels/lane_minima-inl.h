// The smallest of many distances, without a branch per distance: each lane keeps its own.

#if defined(PSAL_KERNELS_LANE_MINIMA_INL_H_) == defined(PSAL_TARGET_TOGGLE)
#ifdef PSAL_KERNELS_LANE_MINIMA_INL_H_
#undef PSAL_KERNELS_LANE_MINIMA_INL_H_
#else
#define PSAL_KERNELS_LANE_MINIMA_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <limits>

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

  // Takes the smallest distances out, in order: calls take(distance, vector, lane) until it returns false, or until
  // none below the bound is left. Distances that differ in their last 4 bits alone count as equal.
  template <typename Take>
  void take_smallest(const Take& take) {
    while (true) {
      Lanes<int32_t> numbered;
      const int32_t smallest = smallest_with_lane(bits_of(load(distance_[0])), numbered);
      const int lane = smallest & (kWidth<float> - 1);
      if (vector_[0][lane] < 0 || !take(distance_[0][lane], vector_[0][lane], lane)) return;
      const Bits<float> taken = numbered == smallest;
      for (int row = 0; row + 1 < rows_; ++row) {
        store(distance_[row], select<float>(taken, load(distance_[row + 1]), load(distance_[row])));
        store(vector_[row], select<int32_t>(taken, load(vector_[row + 1]), load(vector_[row])));
      }
      float* last = distance_[rows_ - 1];
      store(last, select<float>(taken, broadcast(std::numeric_limits<float>::infinity()), load(last)));
      store(vector_[rows_ - 1], select<int32_t>(taken, broadcast(-1), load(vector_[rows_ - 1])));
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
