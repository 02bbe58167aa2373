// The paper's search: jump flooding and random search, all queries at once. The twin of search() in
// src/psal/ops/reference.py: same candidates, same order, same random numbers.

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
#include "initial_matches-inl.h"
#include "lower_bound-inl.h"
#include "padded_map-inl.h"
#include "parallel-inl.h"
#include "random-inl.h"

PSAL_BEGIN_TARGET
namespace psal::PSAL_TARGET {

template <Similarity S, typename T>
class JumpFlooding {
 public:
  JumpFlooding(const Comparison<T>& comparison, const SearchArguments<T>& arguments, const Keys& keys,
               NeighborField<T>& field)
      : comparison_(comparison),
        arguments_(arguments),
        keys_(keys),
        field_(field),
        bound_(comparison, arguments.problem),
        dims_(arguments.problem.patch.dims) {
    const int64_t queries = arguments.problem.query_shape.count();
    for (auto& leaders : before_) leaders = Buffer<int32_t>(queries);
    now_ = Buffer<int32_t>(queries);
    int64_t longest = 1;
    for (int axis = kAxes - dims_; axis < kAxes; ++axis)
      longest = std::max(longest, arguments.problem.key_shape.size[axis]);
    for (int64_t radius = longest; radius >= 1; radius /= 2) radius_[draws_++] = radius;
  }

  void run() {
    for (int64_t iteration = 0; iteration < arguments_.iterations; ++iteration)
      for (int step = 0; step < kJumps; ++step) {
        pass(iteration, step);
        std::swap(before_[step], now_);
      }
  }

 private:
  static constexpr int kJumps = 4;  // 1, 2, 4, 8
  static constexpr int kGroup = LowerBound<T>::kGroup;

  // Candidates of one query that are looked at together.
  struct Group {
    int count = 0;
    int32_t key[kGroup];
  };

  void pass(int64_t iteration, int step) {
    const Shape& shape = arguments_.problem.query_shape;
    for_ranges(shape.count(), 4096, [&](int64_t begin, int64_t end) {
      for (int64_t query = begin; query < end; ++query) now_[query] = field_.at[query * field_.neighbors];
    });
    const int64_t first_stream = arguments_.neighbors + 1 + iteration * draws_ * dims_;
    Buffer<Stream> streams(draws_ * dims_);
    for (int64_t i = 0; i < draws_ * dims_; ++i) streams[i] = Stream(arguments_.seed, first_stream + i);
    for_ranges(shape.rows(), 2, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row)
        for (int64_t x = 0; x < shape.size[2]; ++x) {
          const int64_t query = row * shape.size[2] + x;
          if (now_[query] < 0) continue;
          const int64_t at[kAxes] = {row / shape.size[1], row % shape.size[1], x};
          const int64_t number = comparison_.query.frame.row_start(row) + x;
          Neighbors<T> own = field_[query];
          propagate(query, number, at, own, iteration, step);
          if (step == kJumps - 1) search_at_random(query, number, own, streams.get());
        }
    });
  }

  void propagate(int64_t query, int64_t number, const int64_t (&at)[kAxes], Neighbors<T>& own, int64_t iteration,
                 int step) {
    const Shape& shape = arguments_.problem.query_shape;
    const Frame& key_frame = comparison_.key.frame;
    Group group;
    for (int axis = kAxes - dims_; axis < kAxes; ++axis) {
      const int64_t stride = axis == 2 ? 1 : axis == 1 ? shape.size[2] : shape.size[2] * shape.size[1];
      for (int64_t offset : {-(int64_t(1) << step), int64_t(1) << step}) {
        if (at[axis] + offset < 0 || at[axis] + offset >= shape.size[axis]) continue;
        const int64_t source = query + offset * stride;
        const int32_t leader = now_[source];
        if (leader < 0) continue;
        // An unchanged leader was offered in the last iteration, and what was too bad then is too bad now.
        if (iteration > 0 && before_[step][source] == leader) continue;
        const int64_t target = key_frame.position(leader).at[axis] - offset;
        if (target < 0 || target >= key_frame.shape.size[axis]) continue;
        if (group.count == kGroup) offer(number, group, own, false), group.count = 0;
        group.key[group.count++] = int32_t(leader - offset * key_frame.stride[axis]);
      }
    }
    offer(number, group, own, false);
  }

  // The draws of a group are around one centre: when one of them becomes the best, the rest is drawn again.
  void search_at_random(int64_t query, int64_t number, Neighbors<T>& own, const Stream* streams) {
    const uint64_t counter = arguments_.first_counter + query;
    for (int next = 0; next < draws_;) {
      const Frame::Position centre = comparison_.key.frame.position(own.at[0]);
      Group group;
      for (int draw = next; draw < std::min(draws_, next + kGroup); ++draw)
        group.key[group.count++] = target(centre, counter, radius_[draw], streams + draw * dims_);
      next += offer(number, group, own, true);
    }
  }

  // A random key in the window around another.
  int32_t target(const Frame::Position& centre, uint64_t counter, int64_t radius, const Stream* streams) const {
    const Frame& frame = comparison_.key.frame;
    int64_t key = frame.origin;
    for (int axis = kAxes - dims_; axis < kAxes; ++axis, ++streams) {
      const int64_t low = std::max<int64_t>(0, centre.at[axis] - radius);
      const int64_t high = std::min(frame.shape.size[axis] - 1, centre.at[axis] + radius);
      key += (low + streams->below(counter, high - low + 1)) * frame.stride[axis];
    }
    return int32_t(key);
  }

  // Offers a group's keys in order, if wanted only until one of them becomes the best; returns how many.
  int offer(int64_t number, Group& group, Neighbors<T>& own, bool until_best) {
    if (!group.count) return 0;
    const int32_t best = own.at[0];
    for (uint32_t left = hopeful(number, group, own); left; left &= left - 1) {
      const int i = __builtin_ctz(left);
      if (left & (left - 1)) comparison_.prefetch(group.key[__builtin_ctz(left & (left - 1))]);
      if (own.has(group.key[i])) continue;
      const T cost = comparison_.template cost_below<S>(own.worst(), number, group.key[i]);
      if (cost < own.worst()) own.insert(group.key[i], cost);
      if (until_best && own.at[0] != best) return i + 1;
    }
    return group.count;
  }

  // Bit i is set where key i may become a neighbour.
  uint32_t hopeful(int64_t number, Group& group, const Neighbors<T>& own) const {
    for (int i = group.count; i < kGroup; ++i) group.key[i] = group.key[0];
    uint32_t bits = bound_.may_be_below(own.worst(), number, group.key) & ((1u << group.count) - 1);
    for (int i = 0; i < kGroup; ++i) bits &= ~(uint32_t(!keys_.open[group.key[i]] | own.has(group.key[i])) << i);
    return bits;
  }

  const Comparison<T>& comparison_;
  const SearchArguments<T>& arguments_;
  const Keys& keys_;
  NeighborField<T>& field_;
  const LowerBound<T> bound_;
  const int dims_;
  int draws_ = 0;
  int64_t radius_[64];
  Buffer<int32_t> before_[kJumps], now_;  // each query's best, at the same jump of the last iteration, and now
};

}  // namespace psal::PSAL_TARGET
PSAL_END_TARGET

#endif  // per-target include guard
