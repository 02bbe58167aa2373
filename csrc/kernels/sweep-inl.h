// The fast search: in scanline order, each pixel tries its predecessors' matches, moved along by one pixel. The map is
// cut into chunks of rows that are swept in parallel. A predecessor in another chunk contributes the matches it had
// before the sweep; in the first sweep there are none, so it is skipped.

#if defined(PSAL_KERNELS_SWEEP_INL_H_) == defined(PSAL_TARGET_TOGGLE)
#ifdef PSAL_KERNELS_SWEEP_INL_H_
#undef PSAL_KERNELS_SWEEP_INL_H_
#else
#define PSAL_KERNELS_SWEEP_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>

#include "../simd/target.h"
#include "arguments.h"
#include "best_k-inl.h"
#include "comparison-inl.h"
#include "padded_grid-inl.h"
#include "parallel-inl.h"
#include "patch_sum-inl.h"
#include "random-inl.h"
#include "search_state-inl.h"
#include "tree_seeds-inl.h"
#include "tuning.h"

PSAL_BEGIN_TARGET
namespace psal::PSAL_TARGET {

template <Similarity S, typename T>
class Sweep {
 public:
  explicit Sweep(SearchState<S, T>& state)
      : state_(state),
        comparison_(state.comparison),
        patch_(state.arguments.problem.patch),
        shape_(state.arguments.problem.query_shape) {
    const PaddedGrid &queries = comparison_.query.grid, &keys = comparison_.key.grid;
    for (int axis = 0; axis < kAxes; ++axis) {
      int64_t face[kAxes] = {patch_.size[0], patch_.size[1], patch_.size[2]};
      face[axis] = 1;
      face_[axis] = box_runs<T>(face, comparison_.query.channels, queries, keys);
      incremental_[axis] = kIncrementalGain * face_[axis].total_vectors() <= comparison_.patch.total_vectors();
      stride_[axis] = axis == 2 ? 1 : axis == 1 ? shape_.size[2] : shape_.size[2] * shape_.size[1];
    }
  }

  // The first sweep, forward. Each pixel tries its predecessors' matches. Some pixels, and any with fewer than k
  // matches, also look up the tree: more of them, and more of the tree, where a match is worse than the average so far.
  void seed(const TreeSeeds<T>& seeds) {
    const Buffer<T> query_norms = seeds.inverse_norms_for(comparison_.query);
    for_chunks([&](const Chunk& chunk) {
      typename TreeSeeds<T>::Reader reader(seeds, comparison_.query, query_norms, chunk.begin, chunk.end);
      Pixel pixel = pixel_at(chunk.begin);
      const SeedPlan& plan = seeds.plan();
      double total_cost = 0;
      int64_t searched = 0;
      for (; pixel.query < chunk.end; step(pixel, 1)) {
        BestK<T> best = state_.field.emptied(pixel.query);
        if (state_.is_masked(pixel.query)) {
          best.skip();
          continue;
        }
        propagate(pixel, 1, chunk, best);
        const bool poor = !best.full() || double(best.costs[0]) * double(searched) > total_cost;
        if (!best.full() || is_seeded(pixel, poor ? plan.poor_period : plan.period))
          look_up(reader, pixel, chunk, poor || !plan.only_if_poor, best);
        try_random_step(pixel, 0, best);
        total_cost += double(best.costs[0]);
        ++searched;
      }
    });
  }

  // The following sweeps: backward if `iteration` is even, forward if it is odd.
  void run(int64_t iteration) {
    keep_previous();
    const int direction = iteration % 2 ? 1 : -1;
    for_chunks([&](const Chunk& chunk) {
      Pixel pixel = pixel_at(direction > 0 ? chunk.begin : chunk.end - 1);
      for (int64_t i = chunk.begin; i < chunk.end; ++i, step(pixel, direction)) {
        BestK<T> best = state_.field[pixel.query];
        if (best.skipped()) continue;
        propagate(pixel, direction, chunk, best);
        try_random_step(pixel, iteration + 1, best);
      }
    });
    previous_.reset();
  }

 private:
  struct Pixel {
    int64_t query, padded_index;
    Coordinates at;
  };

  struct Chunk {  // of query indices
    int64_t begin, end;
    bool contains(int64_t query) const { return query >= begin && query < end; }
  };

  Pixel pixel_at(int64_t query) const {
    const int64_t row = query / shape_.size[2], x = query - row * shape_.size[2];
    const int64_t z = row / shape_.size[1], y = row - z * shape_.size[1];
    const PaddedGrid& grid = comparison_.query.grid;
    return {
        .query = query, .padded_index = grid.origin + z * grid.stride[0] + y * grid.stride[1] + x, .at = {{z, y, x}}};
  }

  // To the next pixel, or the previous one.
  void step(Pixel& pixel, int direction) const {
    pixel.query += direction;
    pixel.padded_index += direction;
    pixel.at[2] += direction;
    if (pixel.at[2] < 0 || pixel.at[2] >= shape_.size[2]) pixel = pixel_at(pixel.query);
  }

  // Chunks are whole rows, or parts of a signal's only row. They depend on nothing but the map's size.
  template <typename Body>
  void for_chunks(const Body& body) const {
    const int64_t width = shape_.size[2];
    const int64_t rows = std::max(kChunkRows, (kChunkPixels + width - 1) / width);
    for_ranges(shape_.count(), patch_.dims == 1 ? kChunkPixels : rows * width,
               [&](int64_t begin, int64_t end) { body(Chunk{.begin = begin, .end = end}); });
  }

  void keep_previous() {
    NeighborField<T>& field = state_.field;
    previous_ = std::make_unique<NeighborField<T>>(shape_.count(), field.neighbors);
    for_ranges(field.keys.size(), kQueriesPerTask, [&](int64_t begin, int64_t end) {
      std::copy(field.keys.get() + begin, field.keys.get() + end, previous_->keys.get() + begin);
      std::copy(field.costs.get() + begin, field.costs.get() + end, previous_->costs.get() + begin);
    });
  }

  // Propagation reaches the pixels in between.
  static bool is_seeded(const Pixel& pixel, int64_t period) {
    return (pixel.at[0] + pixel.at[1] + pixel.at[2]) % period == 0;
  }

  void look_up(typename TreeSeeds<T>::Reader& reader, const Pixel& pixel, const Chunk& chunk, bool thorough,
               BestK<T>& best) {
    // For "l2" a descriptor's distance is never above the patch's, so keys beyond the worst cost cannot be better.
    const bool bounded = S == Similarity::l2 && best.full();
    reader.start(pixel.query, bounded ? float(best.worst()) : std::numeric_limits<float>::infinity());
    for (int axis = kAxes - 1; axis >= kAxes - patch_.dims; --axis)
      if (const BestK<T> from = predecessor(pixel, axis, 1, chunk); from.size)
        reader.scan_leaf_of(from.keys[0] + int32_t(comparison_.key.grid.stride[axis]));
    if (thorough) reader.scan_closest_leaves();
    reader.finish([&](int32_t key, float distance) {
      if (!bounded || distance < best.worst()) state_.offer(pixel.padded_index, key, best);
    });
  }

  // The matches of the pixel before this one along an axis; empty if there is none.
  BestK<T> predecessor(const Pixel& pixel, int axis, int direction, const Chunk& chunk) {
    constexpr BestK<T> kNone = {nullptr, nullptr, 0, 0};
    const int64_t coordinate = pixel.at[axis] - direction;
    if (coordinate < 0 || coordinate >= shape_.size[axis]) return kNone;
    const int64_t query = pixel.query - direction * stride_[axis];
    const bool inside = chunk.contains(query);
    if (!inside && !previous_) return kNone;
    const BestK<T> from = inside ? state_.field[query] : (*previous_)[query];
    return from.skipped() ? kNone : from;
  }

  void propagate(const Pixel& pixel, int direction, const Chunk& chunk, BestK<T>& best) {
    for (int axis = kAxes - 1; axis >= kAxes - patch_.dims; --axis) {
      const BestK<T> from = predecessor(pixel, axis, direction, chunk);
      const int32_t step = int32_t(direction * comparison_.key.grid.stride[axis]);
      for (int64_t n = 0; n < from.size; ++n) {
        const int32_t key = from.keys[n] + step;
        if (!state_.keys.is_valid[key] || best.contains(key)) continue;
        if (best.full() && incremental_[axis] &&
            !(moved_cost(pixel, key, axis, direction, from.keys[n], from.costs[n]) < best.worst()))
          continue;
        state_.push_if_room_or_better(pixel.padded_index, key, best);
      }
    }
  }

  // The cost of a predecessor's match after one step: minus the face that leaves the patch, plus the one that enters.
  // Rounding errors would add up along a row, so this only rejects candidates; accepted ones get their exact cost.
  T moved_cost(const Pixel& pixel, int32_t key, int axis, int direction, int32_t from, T cost) const {
    const int64_t channels = comparison_.query.channels, side = patch_.size[axis];
    const int64_t q_step = comparison_.query.grid.stride[axis] * channels;
    const int64_t k_step = comparison_.key.grid.stride[axis] * channels;
    const int64_t enters = direction > 0 ? side - 1 : 0, leaves = direction > 0 ? -1 : side;
    const T* q = comparison_.query_patch(pixel.padded_index);
    const T* k = comparison_.key_patch(key);
    const T sum = comparison_.template unnormalized<S>(cost, from);
    const T change =
        face_change<S>(q + enters * q_step, k + enters * k_step, q + leaves * q_step, k + leaves * k_step, face_[axis]);
    return comparison_.template normalized<S>(sum + change, key);
  }

  // Tries one random key adjacent to the best match.
  void try_random_step(const Pixel& pixel, int64_t sweep, BestK<T>& best) const {
    const SearchArguments<T>& arguments = state_.arguments;
    int64_t steps = 1;
    for (int axis = 0; axis < patch_.dims; ++axis) steps *= 3;
    const uint64_t counter = arguments.first_counter + pixel.query;
    int64_t drawn = Stream(arguments.seed, arguments.neighbors + 1 + sweep).below(counter, steps - 1);
    drawn += drawn >= steps / 2;  // leaves out the middle: the match itself
    int64_t key = best.keys[0];
    for (int axis = kAxes - 1; axis >= kAxes - patch_.dims; --axis, drawn /= 3)
      key += (drawn % 3 - 1) * comparison_.key.grid.stride[axis];
    state_.offer(pixel.padded_index, int32_t(key), best);
  }

  SearchState<S, T>& state_;
  const Comparison<T>& comparison_;
  const Patch& patch_;
  const Shape shape_;
  Runs face_[kAxes];                            // of a patch, across each axis
  bool incremental_[kAxes];                     // whether moved_cost() is worthwhile along an axis
  int64_t stride_[kAxes];                       // of query indices
  std::unique_ptr<NeighborField<T>> previous_;  // the field before this sweep
};

}  // namespace psal::PSAL_TARGET
PSAL_END_TARGET

#endif  // per-target include guard
