// The fast search: scanline order, each pixel taking over what its neighbours found. The picture is cut into chunks
// that are swept at the same time; a neighbour in another chunk counts as it was before the sweep.

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
#include "initial_matches-inl.h"
#include "padded_map-inl.h"
#include "parallel-inl.h"
#include "random-inl.h"
#include "tree_seeds-inl.h"

PSAL_BEGIN_TARGET
namespace psal::PSAL_TARGET {

template <Similarity S, typename T>
class Sweep {
 public:
  Sweep(const Comparison<T>& comparison, const SearchArguments<T>& arguments, const Keys& keys, NeighborField<T>& field)
      : comparison_(comparison),
        arguments_(arguments),
        keys_(keys),
        field_(field),
        dims_(arguments.problem.patch.dims),
        shape_(arguments.problem.query_shape) {
    const Patch& patch = arguments.problem.patch;
    for (int axis = 0; axis < kAxes; ++axis) {
      int64_t face[kAxes] = {patch.size[0], patch.size[1], patch.size[2]};
      face[axis] = 1;
      face_[axis] = box_runs<T>(face, arguments.problem.channels, comparison.query.frame, comparison.key.frame);
      incremental_[axis] = 3 * face_[axis].blocks() <= comparison.patch.blocks();
      stride_[axis] = axis == 2 ? 1 : axis == 1 ? shape_.size[2] : shape_.size[2] * shape_.size[1];
    }
  }

  // The first sweep, forward, which finds its first candidates with a tree.
  void seed(const Seeds<T>& seeds) {
    for_chunks([&](int64_t begin, int64_t end) { seed_chunk(seeds, begin, end); });
  }

  // Backward at even turns, forward at odd ones.
  void turn(int64_t number) {
    before_ = std::make_unique<NeighborField<T>>(shape_.count(), field_.neighbors);
    for_ranges(shape_.count(), 4096, [&](int64_t begin, int64_t end) {
      const int64_t k = field_.neighbors;
      std::copy(field_.at.get() + begin * k, field_.at.get() + end * k, before_->at.get() + begin * k);
      std::copy(field_.cost.get() + begin * k, field_.cost.get() + end * k, before_->cost.get() + begin * k);
    });
    const int direction = number % 2 ? 1 : -1;
    for_chunks([&](int64_t begin, int64_t end) {
      Pixel pixel = pixel_at(direction > 0 ? begin : end - 1);
      for (int64_t i = begin; i < end; ++i, step(pixel, direction)) {
        Neighbors<T> own = field_[pixel.query];
        if (own.at[0] < 0) continue;
        int64_t filled = own.count;
        propagate(pixel, direction, begin, end, own, filled);
        draw(pixel, number + 1, own);
      }
    });
    before_.reset();
  }

 private:
  struct Pixel {
    int64_t query, number;
    int64_t at[kAxes];
  };

  Pixel pixel_at(int64_t query) const {
    const int64_t row = query / shape_.size[2], x = query - row * shape_.size[2];
    const int64_t z = row / shape_.size[1], y = row - z * shape_.size[1];
    const Frame& frame = comparison_.query.frame;
    return {query, frame.origin + z * frame.stride[0] + y * frame.stride[1] + x, {z, y, x}};
  }

  // On to the next pixel, or the one before.
  void step(Pixel& pixel, int direction) const {
    pixel.query += direction;
    pixel.number += direction;
    pixel.at[2] += direction;
    if (pixel.at[2] < 0 || pixel.at[2] >= shape_.size[2]) pixel = pixel_at(pixel.query);
  }

  // Chunks of whole rows, or of a row if there is but one; they depend on the size of the map alone.
  template <typename Body>
  void for_chunks(const Body& body) const {
    constexpr int64_t kRows = 16, kPixels = 4096;
    const int64_t width = shape_.size[2];
    const int64_t grain = dims_ == 1 ? kPixels : std::max(kRows, (kPixels + width - 1) / width) * width;
    for_ranges(shape_.count(), grain, body);
  }

  void seed_chunk(const Seeds<T>& seeds, int64_t begin, int64_t end) {
    typename Seeds<T>::Reader reader(seeds, comparison_.query);
    Pixel pixel = pixel_at(begin);
    for (int64_t query = begin; query < end; ++query, step(pixel, 1)) {
      Neighbors<T> own = field_[query];
      if (arguments_.query_mask && !arguments_.query_mask[query]) {
        std::fill_n(own.at, own.count, -1);
        continue;
      }
      int64_t filled = 0;
      propagate(pixel, 1, begin, end, own, filled);
      if (filled < own.count || is_seeded(pixel)) look_up(reader, pixel, begin, end, own, filled);
      draw(pixel, 0, own);
    }
  }

  // The tree is asked at every other pixel, as on a chessboard: propagation does the rest.
  static bool is_seeded(const Pixel& pixel) { return (pixel.at[0] + pixel.at[1] + pixel.at[2]) % 2 == 0; }

  void look_up(typename Seeds<T>::Reader& reader, const Pixel& pixel, int64_t begin, int64_t end, Neighbors<T>& own,
               int64_t& filled) {
    // A descriptor's distance is never above the patch's: what is further than the worst can't be better.
    const bool bounded = S == Similarity::l2 && filled == own.count;
    reader.start(pixel.query, begin, end, bounded ? float(own.worst()) : std::numeric_limits<float>::infinity());
    for (int axis = kAxes - 1; axis >= kAxes - dims_; --axis)
      if (const Neighbors<T> from = neighbor(pixel, axis, 1, begin, end); from.count)
        reader.look_at(from.at[0] + int32_t(comparison_.key.frame.stride[axis]));
    reader.finish([&](int32_t key, float distance) {
      if (!bounded || distance < own.worst()) offer(pixel.number, key, own, filled);
    });
  }

  // The neighbour's matches, or none where there is no neighbour.
  Neighbors<T> neighbor(const Pixel& pixel, int axis, int direction, int64_t begin, int64_t end) {
    const int64_t at = pixel.at[axis] - direction;
    if (at < 0 || at >= shape_.size[axis]) return {nullptr, nullptr, 0};
    const int64_t query = pixel.query - direction * stride_[axis];
    const bool inside = query >= begin && query < end;
    if (!inside && !before_) return {nullptr, nullptr, 0};
    const Neighbors<T> from = inside ? field_[query] : (*before_)[query];
    return from.at[0] < 0 ? Neighbors<T>{nullptr, nullptr, 0} : from;
  }

  void propagate(const Pixel& pixel, int direction, int64_t begin, int64_t end, Neighbors<T>& own, int64_t& filled) {
    for (int axis = kAxes - 1; axis >= kAxes - dims_; --axis) {
      const Neighbors<T> from = neighbor(pixel, axis, direction, begin, end);
      const int32_t step = int32_t(direction * comparison_.key.frame.stride[axis]);
      for (int64_t n = 0; n < from.count; ++n) {
        const int32_t key = from.at[n] + step;
        if (!keys_.open[key] || has(own, filled, key)) continue;
        if (filled == own.count && incremental_[axis] &&
            !(shifted_cost(pixel.number, key, axis, direction, from.at[n], from.cost[n]) < own.worst()))
          continue;
        insert(pixel.number, key, own, filled);
      }
    }
  }

  // The cost of a neighbour's match one step on: less the face that leaves the patch, plus the one that enters.
  // Rounding adds up, so this is only used to pass over what would not be kept anyway.
  T shifted_cost(int64_t number, int32_t key, int axis, int direction, int32_t from, T cost) const {
    const int64_t channels = comparison_.query.channels, side = arguments_.problem.patch.size[axis];
    const int64_t q_step = comparison_.query.frame.stride[axis] * channels;
    const int64_t k_step = comparison_.key.frame.stride[axis] * channels;
    const int64_t enters = direction > 0 ? side - 1 : 0, leaves = direction > 0 ? -1 : side;
    const T* q = comparison_.query_patch(number);
    const T* k = comparison_.key_patch(key);
    if constexpr (S == Similarity::cosine) cost /= comparison_.inverse_norm[from];
    const T change =
        face_change<S>(q + enters * q_step, k + enters * k_step, q + leaves * q_step, k + leaves * k_step, face_[axis]);
    return comparison_.template weighted<S>(cost + change, key);
  }

  // One random step from the best match.
  void draw(const Pixel& pixel, int64_t sweep, Neighbors<T>& own) const {
    const Frame& frame = comparison_.key.frame;
    int64_t steps = 1;
    for (int axis = 0; axis < dims_; ++axis) steps *= 3;
    const uint64_t counter = arguments_.first_counter + pixel.query;
    int64_t drawn = Stream(arguments_.seed, arguments_.neighbors + 1 + sweep).below(counter, steps - 1);
    drawn += drawn >= steps / 2;  // never the middle: that is the match itself
    int64_t key = own.at[0];
    for (int axis = kAxes - 1; axis >= kAxes - dims_; --axis, drawn /= 3) key += (drawn % 3 - 1) * frame.stride[axis];
    int64_t filled = own.count;
    offer(pixel.number, int32_t(key), own, filled);
  }

  static bool has(const Neighbors<T>& own, int64_t filled, int32_t key) {
    return Neighbors<T>{own.at, own.cost, filled}.has(key);
  }

  void offer(int64_t number, int32_t key, Neighbors<T>& own, int64_t& filled) const {
    if (keys_.open[key] && !has(own, filled, key)) insert(number, key, own, filled);
  }

  void insert(int64_t number, int32_t key, Neighbors<T>& own, int64_t& filled) const {
    if (filled < own.count) {
      ++filled;
      Neighbors<T>{own.at, own.cost, filled}.insert(key, sortable(comparison_.template cost<S>(number, key)));
      return;
    }
    const T cost = comparison_.template cost_below<S>(own.worst(), number, key);
    if (cost < own.worst()) own.insert(key, cost);
  }

  const Comparison<T>& comparison_;
  const SearchArguments<T>& arguments_;
  const Keys& keys_;
  NeighborField<T>& field_;
  const int dims_;
  const Shape shape_;
  Runs face_[kAxes];
  bool incremental_[kAxes];
  int64_t stride_[kAxes];
  std::unique_ptr<NeighborField<T>> before_;
};

}  // namespace psal::PSAL_TARGET
PSAL_END_TARGET

#endif  // per-target include guard
