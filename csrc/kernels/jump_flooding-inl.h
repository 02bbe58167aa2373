// The paper's search: jump flooding and random search, all queries at once. The twin of search() in
// src/psal/ops/reference.py: same candidates in the same order, same random numbers.

#if defined(PSAL_KERNELS_JUMP_FLOODING_INL_H_) == defined(PSAL_TARGET_TOGGLE)
#ifdef PSAL_KERNELS_JUMP_FLOODING_INL_H_
#undef PSAL_KERNELS_JUMP_FLOODING_INL_H_
#else
#define PSAL_KERNELS_JUMP_FLOODING_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <utility>

#include "../simd/target.h"
#include "arguments.h"
#include "best_k-inl.h"
#include "buffer-inl.h"
#include "comparison-inl.h"
#include "lower_bound-inl.h"
#include "padded_grid-inl.h"
#include "parallel-inl.h"
#include "random-inl.h"
#include "search_state-inl.h"
#include "tuning.h"

PSAL_BEGIN_TARGET
namespace psal::PSAL_TARGET {

template <Similarity S, typename T>
class JumpFlooding {
 public:
  explicit JumpFlooding(SearchState<S, T>& state)
      : state_(state),
        problem_(state.arguments.problem),
        dims_(problem_.patch.dims),
        bound_(state.comparison, problem_),
        current_(problem_.query_shape.count()) {
    for (auto& previous : previous_) previous = Buffer<int32_t>(problem_.query_shape.count());
    int64_t longest = 1;
    for (int axis = kAxes - dims_; axis < kAxes; ++axis) longest = std::max(longest, problem_.key_shape.size[axis]);
    for (int64_t radius = longest; radius >= 1; radius /= 2) radius_[draws_++] = radius;
  }

  void run() {
    for (int64_t iteration = 0; iteration < state_.arguments.iterations; ++iteration)
      for (int jump = 0; jump < kJumps; ++jump) {
        pass(iteration, jump);
        std::swap(previous_[jump], current_);
      }
  }

 private:
  static constexpr int kJumps = 4;  // by 1, 2, 4, 8 pixels
  static constexpr int kGroup = LowerBound<T>::kGroup;

  struct Pixel {
    int64_t query, padded_index;
    Coordinates at;
  };

  // Candidates of one query that are tested together.
  struct Group {
    int size = 0;
    int32_t key[kGroup];
  };

  // All queries read their neighbors' best keys as they were before the pass, so that their order does not matter.
  void pass(int64_t iteration, int jump) {
    const Shape& shape = problem_.query_shape;
    const NeighborField<T>& field = state_.field;
    for_ranges(shape.count(), kQueriesPerTask, [&](int64_t begin, int64_t end) {
      for (int64_t query = begin; query < end; ++query) current_[query] = field.keys[query * field.neighbors];
    });
    const int64_t first_stream = state_.arguments.neighbors + 1 + iteration * draws_ * dims_;
    Buffer<Stream> streams(draws_ * dims_);
    for (int64_t i = 0; i < draws_ * dims_; ++i) streams[i] = Stream(state_.arguments.seed, first_stream + i);
    for_ranges(shape.rows(), kWindowRowsPerTask, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row)
        for (int64_t x = 0; x < shape.size[2]; ++x) {
          const Pixel pixel = {.query = row * shape.size[2] + x,
                               .padded_index = state_.comparison.query.grid.row_start(row) + x,
                               .at = {{row / shape.size[1], row % shape.size[1], x}}};
          if (current_[pixel.query] < 0) continue;
          BestK<T> best = state_.field[pixel.query];
          propagate(pixel, iteration, jump, best);
          if (jump == kJumps - 1) search_at_random(pixel, streams.get(), best);
        }
    });
  }

  // Tries the best keys of the queries one jump away, moved back by the jump.
  void propagate(const Pixel& pixel, int64_t iteration, int jump, BestK<T>& best) {
    const Shape& shape = problem_.query_shape;
    const PaddedGrid& keys = state_.comparison.key.grid;
    Group group;
    for (int axis = kAxes - dims_; axis < kAxes; ++axis) {
      const int64_t stride = axis == 2 ? 1 : axis == 1 ? shape.size[2] : shape.size[2] * shape.size[1];
      for (int64_t offset : {-(int64_t(1) << jump), int64_t(1) << jump}) {
        if (pixel.at[axis] + offset < 0 || pixel.at[axis] + offset >= shape.size[axis]) continue;
        const int64_t source = pixel.query + offset * stride;
        const int32_t key = current_[source];
        if (key < 0) continue;
        // If it did not change since the last iteration, it was offered then: what was rejected then is rejected now.
        if (iteration > 0 && previous_[jump][source] == key) continue;
        const int64_t target = keys.coordinates(key)[axis] - offset;
        if (target < 0 || target >= keys.shape.size[axis]) continue;
        if (group.size == kGroup) offer(pixel, group, false, best), group.size = 0;
        group.key[group.size++] = int32_t(key - offset * keys.stride[axis]);
      }
    }
    offer(pixel, group, false, best);
  }

  // Tries random keys around the best one, in windows that shrink. A group is drawn around one center; if one of its
  // keys becomes the best, the keys after it are drawn again around that.
  void search_at_random(const Pixel& pixel, const Stream* streams, BestK<T>& best) {
    const uint64_t counter = state_.arguments.first_counter + pixel.query;
    for (int next = 0; next < draws_;) {
      const Coordinates center = state_.comparison.key.grid.coordinates(best.keys[0]);
      Group group;
      for (int draw = next; draw < std::min(draws_, next + kGroup); ++draw)
        group.key[group.size++] = random_key(center, counter, radius_[draw], streams + draw * dims_);
      next += offer(pixel, group, true, best);
    }
  }

  int32_t random_key(const Coordinates& center, uint64_t counter, int64_t radius, const Stream* streams) const {
    const PaddedGrid& grid = state_.comparison.key.grid;
    int64_t key = grid.origin;
    for (int axis = kAxes - dims_; axis < kAxes; ++axis, ++streams) {
      const int64_t low = std::max<int64_t>(0, center[axis] - radius);
      const int64_t high = std::min(grid.shape.size[axis] - 1, center[axis] + radius);
      key += (low + streams->below(counter, high - low + 1)) * grid.stride[axis];
    }
    return int32_t(key);
  }

  // Offers a group's keys in order, if wanted only until one of them becomes the best; returns how many it offered.
  int offer(const Pixel& pixel, Group& group, bool until_best, BestK<T>& best) {
    if (!group.size) return 0;
    const int32_t first = best.keys[0];
    for (uint32_t left = promising(pixel, group, best); left; left &= left - 1) {
      const int i = __builtin_ctz(left);
      if (left & (left - 1)) state_.comparison.prefetch(group.key[__builtin_ctz(left & (left - 1))]);
      if (best.contains(group.key[i])) continue;
      state_.push_if_better(pixel.padded_index, group.key[i], best);
      if (until_best && best.keys[0] != first) return i + 1;
    }
    return group.size;
  }

  // Bit i is set if key i is valid, new, and may be better than the worst.
  uint32_t promising(const Pixel& pixel, Group& group, const BestK<T>& best) const {
    for (int i = group.size; i < kGroup; ++i) group.key[i] = group.key[0];
    uint32_t bits = bound_.may_be_below(best.worst(), pixel.padded_index, group.key) & ((1u << group.size) - 1);
    for (int i = 0; i < kGroup; ++i) {  // branchless: the outcome is hard to predict
      const uint32_t excluded = uint32_t(!state_.keys.is_valid[group.key[i]]) | uint32_t(best.contains(group.key[i]));
      bits &= ~(excluded << i);
    }
    return bits;
  }

  SearchState<S, T>& state_;
  const Problem<T>& problem_;
  const int dims_;
  const LowerBound<T> bound_;
  int draws_ = 0;       // of a query's random search
  int64_t radius_[64];  // of the window of each draw
  // Every query's best key: now, and in the last iteration at the same jump.
  Buffer<int32_t> current_, previous_[kJumps];
};

}  // namespace psal::PSAL_TARGET
PSAL_END_TARGET

#endif  // per-target include guard
