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
#include "border_keys-inl.h"
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
      const int64_t q = queries.stride[axis] * comparison_.query.channels;
      const int64_t k = keys.stride[axis] * comparison_.query.channels, side = patch_.size[axis];
      offsets_[axis][0] = {.entering = {0, 0}, .leaving = {side * q, side * k}};
      offsets_[axis][1] = {.entering = {(side - 1) * q, (side - 1) * k}, .leaving = {-q, -k}};
      stride_[axis] = axis == 2 ? 1 : axis == 1 ? shape_.size[2] : shape_.size[2] * shape_.size[1];
    }
    const int64_t z_reach = patch_.dims > 2, y_reach = patch_.dims > 1;
    for (int64_t z = -z_reach; z <= z_reach; ++z)
      for (int64_t y = -y_reach; y <= y_reach; ++y)
        for (int64_t x = -1; x <= 1; ++x)
          if (z || y || x) adjacent_[adjacent_count_++] = int32_t(z * keys.stride[0] + y * keys.stride[1] + x);
  }

  // The first sweep, forward. Each pixel tries its predecessors' matches. Some pixels, and any with fewer than k
  // matches, also look up the tree: more of them, and more of the tree, where a match is worse than the average so far.
  void seed(const TreeSeeds<T>& seeds) {
    const Buffer<T> query_norms = seeds.inverse_norms_for(comparison_.query);
    const Stream stream = stream_of(0);
    const BorderKeys border_keys(shape_, comparison_.key.grid, state_.arguments.seed);
    for_chunks([&](const Chunk& chunk) {
      typename TreeSeeds<T>::Reader reader(seeds, comparison_.query, query_norms, chunk.begin, chunk.end);
      const SeedPlan& plan = seeds.plan();
      Candidates candidates = no_candidates(state_.arguments.neighbors + plan.spare);
      Pixel pixel = pixel_at(chunk.begin);
      double total_cost = 0;
      int64_t searched = 0;
      for (; pixel.query < chunk.end; step(pixel, 1)) {
        BestK<T> best = state_.field.emptied(pixel.query);
        if (state_.is_masked(pixel.query)) {
          best.skip();
          continue;
        }
        propagate_first(pixel, chunk, candidates, best);
        if (border_keys.is_at_border(pixel.at))
          border_keys.draw(pixel.at, state_.arguments.first_counter + pixel.query,
                           [&](int32_t key) { state_.offer(pixel.padded_index, key, best); });
        const bool poor = !best.full() || double(best.costs[0]) * double(searched) > total_cost;
        if (!best.full() || is_seeded(pixel, poor ? plan.poor_period : plan.period))
          look_up(reader, pixel, chunk, poor || !plan.only_if_poor, candidates, best);
        try_random_step(pixel, stream, best);
        total_cost += double(best.costs[0]);
        ++searched;
      }
    });
  }

  // The following sweeps: backward if `iteration` is even, forward if it is odd.
  void run(int64_t iteration) {
    keep_previous();
    const int direction = iteration % 2 ? 1 : -1;
    const Stream stream = stream_of(iteration + 1);
    for_chunks([&](const Chunk& chunk) {
      Candidates candidates = no_candidates();
      Pixel pixel = pixel_at(direction > 0 ? chunk.begin : chunk.end - 1);
      for (int64_t i = chunk.begin; i < chunk.end; ++i, step(pixel, direction)) {
        BestK<T> best = state_.field[pixel.query];
        if (best.skipped()) continue;
        propagate(pixel, direction, chunk, candidates, best);
        try_random_step(pixel, stream, best);
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

  // Keys that a pixel's predecessors suggest, and their costs.
  struct Candidates {
    Buffer<int32_t> keys;
    Buffer<T> costs;
    int64_t size = 0;

    explicit Candidates(int64_t capacity) : keys(capacity), costs(capacity) {}
  };

  // Room for what predecessors suggest or the tree finds, and one more that is written and overwritten.
  Candidates no_candidates(int64_t found = 0) const {
    return Candidates(std::max(patch_.dims * state_.arguments.neighbors, found) + 1);
  }

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
               Candidates& candidates, BestK<T>& best) {
    // For "l2" a descriptor's distance is never above the patch's, so keys beyond the worst cost cannot be better.
    const T limit = S == Similarity::l2 && best.full() ? best.worst() : std::numeric_limits<T>::infinity();
    reader.start(pixel.query, float(limit));
    for (int axis = kAxes - 1; axis >= kAxes - patch_.dims; --axis)
      if (const BestK<T> from = predecessor(pixel, axis, 1, chunk); from.size)
        reader.scan_leaf_of(from.keys[0] + int32_t(comparison_.key.grid.stride[axis]));
    if (thorough) reader.scan_closest_leaves();
    candidates.size = 0;
    reader.finish([&](int32_t key, float distance) {
      candidates.keys[candidates.size] = key;
      candidates.size += (!best.contains(key)) & (distance < limit);
    });
    push_exact(pixel, candidates, best);
    if (!best.full())
      reader.take_until_enough([&](int32_t key) {
        state_.offer(pixel.padded_index, key, best);
        return !best.full();
      });
  }

  // The matches of the pixel before this one along an axis; empty if there is none.
  BestK<T> predecessor(const Pixel& pixel, int axis, int direction, const Chunk& chunk) {
    const int64_t coordinate = pixel.at[axis] - direction, query = pixel.query - direction * stride_[axis];
    NeighborField<T>* field = chunk.contains(query) ? &state_.field : previous_.get();
    const bool exists = coordinate >= 0 && coordinate < shape_.size[axis] && field;
    BestK<T> from = (exists ? *field : state_.field)[exists ? query : pixel.query];
    // Its members are set one by one: a choice between two structs would go through memory.
    if (!exists || from.skipped()) from.size = 0;
    return from;
  }

  // The first matches of a pixel: the best of what its predecessors suggest.
  void propagate_first(const Pixel& pixel, const Chunk& chunk, Candidates& candidates, BestK<T>& best) {
    collect(pixel, 1, chunk, candidates, best);
    for (int64_t i = 0; i < candidates.size; ++i)
      if (!best.full() || candidates.costs[i] < best.worst()) best.push(candidates.keys[i], candidates.costs[i]);
    // Their exact costs, in order.
    std::copy_n(best.keys, best.size, candidates.keys.get());
    candidates.size = best.size;
    best.size = 0;
    push_exact(pixel, candidates, best);
  }

  // Pushes candidates that the pixel does not have yet, with their exact costs.
  void push_exact(const Pixel& pixel, const Candidates& candidates, BestK<T>& best) const {
    for (int64_t first = 0; first < candidates.size; first += kKeyGroup) {
      T costs[kKeyGroup];
      group_costs(pixel, candidates, first, costs);
      for (int64_t i = first; i < std::min(candidates.size, first + kKeyGroup); ++i)
        if (const T cost = nan_to_infinity(costs[i - first]); !best.full() || cost < best.worst())
          best.push(candidates.keys[i], cost);
    }
  }

  // Improves a pixel's matches by those of its predecessors.
  void propagate(const Pixel& pixel, int direction, const Chunk& chunk, Candidates& candidates, BestK<T>& best) {
    collect(pixel, direction, chunk, candidates, best);
    for (int64_t i = 0; i < candidates.size; ++i)
      if (candidates.costs[i] < best.worst()) state_.push_if_better(pixel.padded_index, candidates.keys[i], best);
  }

  // Collects the predecessors' matches after one step, unless the pixel has them already, with their costs.
  void collect(const Pixel& pixel, int direction, const Chunk& chunk, Candidates& candidates, const BestK<T>& best) {
    candidates.size = 0;
    for (int axis = kAxes - 1; axis >= kAxes - patch_.dims; --axis) {
      const BestK<T> from = predecessor(pixel, axis, direction, chunk);
      const int32_t step = int32_t(direction * comparison_.key.grid.stride[axis]);
      const int64_t first = candidates.size;
      for (int64_t n = 0; n < from.size; ++n) {  // branchless: a candidate that does not count is overwritten
        const int32_t key = from.keys[n] + step;
        bool counts = state_.keys.is_valid[key] & !best.contains(key);
        for (int64_t i = 0; i < first; ++i) counts &= candidates.keys[i] != key;
        candidates.keys[candidates.size] = key;
        candidates.costs[candidates.size] = from.costs[n];
        candidates.size += counts;
      }
      int64_t i = first;
      for (; i + 1 < candidates.size; i += kKeyGroup) move<kKeyGroup>(pixel, direction, axis, candidates, i);
      if (i < candidates.size) move<1>(pixel, direction, axis, candidates, i);
    }
  }

  // Replaces the costs of a group of candidates, those before a step along an axis, by those after it: minus the face
  // that leaves the patch, plus the one that enters. Rounding errors would add up along a row, so this only rejects
  // candidates; accepted ones get their exact cost.
  template <int Keys>
  void move(const Pixel& pixel, int direction, int axis, Candidates& candidates, int64_t first) const {
    T costs[Keys];
    if (incremental_[axis]) {
      const T* keys[Keys];
      group_patches(candidates, first, keys);
      face_changes<S>(comparison_.query_patch(pixel.padded_index), keys, face_[axis], offsets_[axis][direction > 0],
                      costs);
    } else {
      group_costs(pixel, candidates, first, costs);
    }
    const int32_t step = int32_t(direction * comparison_.key.grid.stride[axis]);
    for (int64_t i = first; i < std::min(candidates.size, first + Keys); ++i) {
      const int32_t key = candidates.keys[i];
      T& cost = candidates.costs[i];
      if (incremental_[axis])
        cost = comparison_.template normalized<S>(
            comparison_.template unnormalized<S>(cost, key - step) + costs[i - first], key);
      else
        cost = costs[i - first];
      cost = nan_to_infinity(cost);
    }
  }

  // The patches of a group of candidates; where it reaches beyond their end, the first one again.
  template <int Keys>
  void group_patches(const Candidates& candidates, int64_t first, const T* (&keys)[Keys]) const {
    for (int g = 0; g < Keys; ++g)
      keys[g] = comparison_.key_patch(candidates.keys[first + g < candidates.size ? first + g : first]);
  }

  // Their exact costs, which may be NaN.
  template <int Keys>
  void group_costs(const Pixel& pixel, const Candidates& candidates, int64_t first, T (&costs)[Keys]) const {
    const T* keys[Keys];
    group_patches(candidates, first, keys);
    sum_group<S>(comparison_.query_patch(pixel.padded_index), keys, comparison_.patch, costs);
    for (int64_t i = first; i < std::min(candidates.size, first + Keys); ++i)
      costs[i - first] = comparison_.template normalized<S>(costs[i - first], candidates.keys[i]);
  }

  // Tries one random key adjacent to the best match.
  void try_random_step(const Pixel& pixel, const Stream& stream, BestK<T>& best) const {
    const int64_t drawn = stream.below(state_.arguments.first_counter + pixel.query, adjacent_count_);
    state_.offer(pixel.padded_index, best.keys[0] + adjacent_[drawn], best);
  }

  // The random numbers of a sweep.
  Stream stream_of(int64_t sweep) const {
    return Stream(state_.arguments.seed, state_.arguments.neighbors + 1 + sweep);
  }

  SearchState<S, T>& state_;
  const Comparison<T>& comparison_;
  const Patch& patch_;
  const Shape shape_;
  Runs face_[kAxes];               // of a patch, across each axis
  FaceOffsets offsets_[kAxes][2];  // of those that change in a step backward, forward
  bool incremental_[kAxes];        // whether face_changes() is worthwhile along an axis
  int64_t stride_[kAxes];          // of query indices
  int32_t adjacent_[26];           // steps from a key to those around it
  int64_t adjacent_count_ = 0;
  std::unique_ptr<NeighborField<T>> previous_;  // the field before this sweep
};

}  // namespace psal::PSAL_TARGET
PSAL_END_TARGET

#endif  // per-target include guard
