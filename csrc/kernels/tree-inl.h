// A kd-tree over descriptors. In its leaves, 16 keys are interleaved so that they are compared at once. The keys of a
// leaf are alike, so 8 bits per component, relative to a corner of the leaf, tell them apart: the time of a search is
// that of loading leaves, and these are a quarter of the size.

#if defined(PSAL_KERNELS_TREE_INL_H_) == defined(PSAL_TARGET_TOGGLE)
#ifdef PSAL_KERNELS_TREE_INL_H_
#undef PSAL_KERNELS_TREE_INL_H_
#else
#define PSAL_KERNELS_TREE_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <limits>

#include "../simd/lanes-inl.h"
#include "../simd/target.h"
#include "buffer-inl.h"
#include "descriptor-inl.h"
#include "lane_minima-inl.h"
#include "parallel-inl.h"
#include "patch_sum-inl.h"
#include "tuning.h"

PSAL_BEGIN_TARGET
namespace psal::PSAL_TARGET {

// The tree is complete: node i has the children 2 i and 2 i + 1, the root is node 1, all leaves have the same depth.
class Tree {
 public:
  static constexpr int64_t kMaxVisited = std::max(kThoroughPlan.leaves, kNoisePlan.leaves);

  // descriptors: [count][kDescriptor]; padded_indices: of the keys that they describe.
  Tree(const Buffer<float>& descriptors, const Buffer<int32_t>& padded_indices, int64_t count) : count_(count) {
    while ((count >> (depth_ + 1)) >= kLeafSize * 3 / 4) ++depth_;
    nodes_ = Buffer<Node>(leaves(), {.axis = 0, .threshold = 0});
    Buffer<int32_t> order(count);
    for (int64_t i = 0; i < count; ++i) order[i] = int32_t(i);
    build(descriptors, padded_indices, order);
  }

  int64_t leaves() const { return int64_t(1) << depth_; }
  int64_t leaf_size(int64_t leaf) const { return start_[leaf + 1] - start_[leaf]; }
  int32_t key(int64_t leaf, int64_t i) const { return keys_[first_block(leaf) * kWidth<float> + i]; }
  int32_t key_of_lane(int32_t block, int lane) const { return keys_[int64_t(block) * kWidth<float> + lane]; }

  // The leaf that a descriptor belongs to.
  int64_t leaf_of(const float* q) const {
    int64_t node = 1;
    for (int level = 0; level < depth_; ++level) node = 2 * node + nodes_[node].is_right(q);
    return node - leaves();
  }

  // Calls scan(leaf) for up to `count` leaves, at most kMaxVisited, that are closer than `limit`: closest first,
  // beginning after the leaf that q belongs to, which counts.
  template <typename Scan>
  void visit_closest(const float (&q)[kDescriptor], int64_t leaf, int64_t count, float limit, const Scan& scan) const {
    Branch branches[kMaxVisited];  // the closest ones, in order: no more than leaves are left to visit
    int64_t size = 0;
    const auto add = [&](float distance, int32_t node) {
      if (!(distance < limit)) return;
      int64_t place = size == count ? size - 1 : size++;
      for (; place > 0 && distance < branches[place - 1].distance; --place) branches[place] = branches[place - 1];
      branches[place] = {.distance = distance, .node = node};
      if (size == count) limit = branches[size - 1].distance;
    };
    if (--count == 0) return;
    for (int level = 0; level < depth_; ++level) {  // this way down is known: its loads need not wait for each other
      const int32_t near = int32_t((leaf + leaves()) >> (depth_ - level - 1));
      add(nodes_[near / 2].gap(q), near ^ 1);
    }
    while (size) {
      const Branch from = branches[0];
      std::copy(branches + 1, branches + size, branches);
      --size, --count;
      int32_t node = from.node;
      while (node < leaves()) {
        const int32_t near = 2 * node + nodes_[node].is_right(q);
        if (count) add(from.distance + nodes_[node].gap(q), near ^ 1);
        node = near;
      }
      scan(node - leaves());
    }
  }

  // Pushes the distances of the keys of a leaf: those of a block are one vector.
  void scan(int64_t leaf, const float (&q)[kDescriptor], LaneMinima& minima) const {
    constexpr int w = kWidth<float>;
    const Frame& frame = frames_[leaf];
    int16_t steps[kDescriptor];
    frame.locate(q, steps);
    Lanes<int16_t> even[kDescriptor / 4], odd[kDescriptor / 4];  // two of four components each, in all lanes
    for (int i = 0; i < kDescriptor / 4; ++i) {
      even[i] = broadcast_pair(steps + 4 * i);
      odd[i] = broadcast_pair(steps + 4 * i + 2);
    }
    const float scale = frame.step * frame.step;
    const int64_t first = first_block(leaf), end = first + block_count(leaf);
    for (int64_t block = first; block < end; ++block) {
      const int16_t* components = blocks_.get() + block * kDescriptor / 2 * w;
      Lanes<int32_t> square{};
      for (int i = 0; i < kDescriptor / 4; ++i) {
        const Lanes<int16_t> four = load(components + i * 2 * w);
        square += squares_of_pairs(even[i] - low_bytes(four)) + squares_of_pairs(odd[i] - high_bytes(four));
      }
      // Clamped to a finite value, so that an infinite limit lets every key pass.
      const Lanes<float> distance =
          smaller<float>(converted<float>(square) * scale, broadcast(std::numeric_limits<float>::max()));
      minima.push(distance, int32_t(block));
    }
  }

  // Calls body(key, leaf) for every key.
  template <typename Body>
  void for_each_key(const Body& body) const {
    for_ranges(leaves(), kLeavesPerTask, [&](int64_t begin, int64_t end) {
      for (int64_t leaf = begin; leaf < end; ++leaf)
        for (int64_t i = 0; i < leaf_size(leaf); ++i) body(keys_[first_block(leaf) * kWidth<float> + i], leaf);
    });
  }

 private:
  // Splits every node near its median along its widest axis, then fills the leaves. `order` ends up sorted by leaf.
  // Large nodes are split level by level, in parallel; the subtrees below them one at a time, because their descriptors
  // then stay in the cache.
  void build(const Buffer<float>& descriptors, const Buffer<int32_t>& padded_indices, Buffer<int32_t>& order) {
    constexpr int w = kWidth<float>;
    start_ = Buffer<int32_t>(leaves() + 1, 0);
    start_[leaves()] = int32_t(count_);
    blocks_ = Buffer<int16_t>(first_block(leaves()) * kDescriptor / 2 * w);
    keys_ = Buffer<int32_t>(first_block(leaves()) * w);
    frames_ = Buffer<Frame>(leaves());
    Buffer<int32_t> spare(count_);
    const auto split_nodes = [&](int level, int64_t begin, int64_t end) {  // numbered from the left
      const int64_t span = leaves() >> level;
      for (int64_t i = begin; i < end; ++i) {
        const int32_t start = start_[i * span], size = start_[(i + 1) * span] - start;
        start_[i * span + span / 2] =
            start + split(descriptors, order.get() + start, spare.get() + start, size, (int64_t(1) << level) + i);
      }
    };
    int top = 0;
    for (; top < depth_ && (count_ >> top) > kSubtreeKeys; ++top)
      for_each_task(int64_t(1) << top, [&](int64_t i) { split_nodes(top, i, i + 1); });
    for_each_task(int64_t(1) << top, [&](int64_t i) {
      for (int level = top; level < depth_; ++level) split_nodes(level, i << (level - top), (i + 1) << (level - top));
      for (int64_t leaf = i << (depth_ - top); leaf < (i + 1) << (depth_ - top); ++leaf)
        fill_leaf(leaf, descriptors, padded_indices, order);
    });
  }

  // Partitions a node's keys into two halves; returns the size of the first.
  int32_t split(const Buffer<float>& descriptors, int32_t* keys, int32_t* spare, int32_t size, int64_t node) {
    const auto value = [&](int32_t key, int64_t axis) { return descriptors[int64_t(key) * kDescriptor + axis]; };
    const int samples = int(std::min<int64_t>(size, kSplitSamples));
    int32_t sample[kSplitSamples];
    Lanes<float> total{}, squares{};
    for (int s = 0; s < samples; ++s) {
      sample[s] = keys[int64_t(s) * size / samples];
      const Lanes<float> x = load(descriptors.get() + int64_t(sample[s]) * kDescriptor);
      total += x;
      squares += x * x;
    }
    int axis = 0;
    float widest = -1;
    for (int d = 0; d < kDescriptor; ++d) {
      const float spread = squares[d] - total[d] * total[d] / float(std::max(samples, 1));
      if (spread > widest) widest = spread, axis = d;
    }
    float values[kSplitSamples] = {};
    for (int s = 0; s < samples; ++s) values[s] = value(sample[s], axis);
    std::nth_element(values, values + samples / 2, values + samples);
    float threshold = values[samples / 2];
    int32_t left = partition(descriptors, keys, spare, size, axis, threshold);
    if (!balanced(left, size)) {  // many values equal the threshold: put them on the other side
      std::sort(values, values + samples);
      if (samples) threshold = *std::upper_bound(values, values + samples - 1, threshold);
      left = partition(descriptors, keys, spare, size, axis, threshold);
    }
    if (!balanced(left, size)) {  // nearly all values are equal: any half will do
      left = size / 2;
      std::nth_element(keys, keys + left, keys + size, [&](int32_t a, int32_t b) {
        return value(a, axis) < value(b, axis) || (value(a, axis) == value(b, axis) && a < b);
      });
      if (size) threshold = value(keys[left], axis);
    }
    nodes_[node] = {.axis = axis, .threshold = threshold};
    return left;
  }

  static constexpr int16_t kMaxByte = 255;

  // A split: smaller values along its axis go left.
  struct Node {
    int32_t axis;
    float threshold;

    bool is_right(const float* q) const { return q[axis] >= threshold; }
    float gap(const float* q) const { return (q[axis] - threshold) * (q[axis] - threshold); }
  };

  // A subtree on the far side of a split, and an estimate of its squared distance: the sum of the gaps that were
  // crossed on the way. It is too large where the same axis was crossed twice, which is rare and costs little.
  struct Branch {
    float distance;
    int32_t node;
  };

  static bool balanced(int64_t left, int64_t size) { return left * 4 >= size && left * 4 <= size * 3; }

  // A stable, branchless partition: both halves are written to, and only the right one's end advances.
  static int32_t partition(const Buffer<float>& descriptors, int32_t* keys, int32_t* spare, int32_t size, int axis,
                           float threshold) {
    const float* column = descriptors.get() + axis;
    int32_t left = 0, right = 0;
    for (int32_t i = 0; i < size; ++i) {
      const int32_t key = keys[i];
      const bool is_left = column[int64_t(key) * kDescriptor] < threshold;
      keys[left] = key;
      spare[right] = key;
      left += is_left;
      right += !is_left;
    }
    std::copy_n(spare, right, keys + left);
    return left;
  }

  // What a leaf's components are relative to.
  struct Frame {
    float corner[kDescriptor];
    float step;

    // A descriptor in steps from the corner. Far ones are moved closer, so that sums of squares fit in 32 bits.
    void locate(const float* descriptor, int16_t (&steps)[kDescriptor]) const {
      constexpr float kMaxSteps = 4096;
      const Lanes<float> exact = (load(descriptor) - load(corner)) * (1 / step);
      const Lanes<float> near = larger<float>(smaller<float>(exact, broadcast(kMaxSteps)), broadcast(-kMaxSteps));
      int32_t shifted[kDescriptor];  // not negative, so that conversion rounds down
      store(shifted, converted<int32_t>(near - (-kMaxSteps - 0.5f)));
      for (int d = 0; d < kDescriptor; ++d) steps[d] = int16_t(shifted[d] - int32_t(kMaxSteps));
    }
  };

  // Around the given keys: all of them are less than 256 steps from the corner, along each axis.
  static Frame frame_of(const Buffer<float>& descriptors, const int32_t* keys, int64_t size) {
    Frame frame = {.corner = {}, .step = 1};
    if (!size) return frame;
    Lanes<float> low = load(descriptors.get() + int64_t(keys[0]) * kDescriptor), high = low;
    for (int64_t i = 1; i < size; ++i) {
      const Lanes<float> x = load(descriptors.get() + int64_t(keys[i]) * kDescriptor);
      low = smaller<float>(x, low);
      high = larger<float>(x, high);
    }
    store(frame.corner, low);
    const float extent = largest<float>(high - low);
    if (extent > 0) frame.step = std::max(extent / kMaxByte, std::numeric_limits<float>::min());
    return frame;
  }

  // Where a leaf's blocks begin: each leaf may fill its last block in part, so it gets one more than its keys need.
  int64_t first_block(int64_t leaf) const { return start_[leaf] / kWidth<float> + leaf; }
  int64_t block_count(int64_t leaf) const { return (leaf_size(leaf) + kWidth<float> - 1) / kWidth<float>; }

  // Lays a leaf out in blocks of 16 keys, [component / 4][key][4]; the last one is filled up with the far corner of the
  // leaf's frame.
  void fill_leaf(int64_t leaf, const Buffer<float>& descriptors, const Buffer<int32_t>& padded_indices,
                 const Buffer<int32_t>& order) {
    constexpr int w = kWidth<float>;
    const int64_t size = leaf_size(leaf), first = first_block(leaf) * w;
    const int32_t* members = order.get() + start_[leaf];
    const Frame& frame = frames_[leaf] = frame_of(descriptors, members, size);
    for (int64_t i = 0; i < block_count(leaf) * w; ++i) {
      keys_[first + i] = i < size ? padded_indices[members[i]] : -1;
      int16_t steps[kDescriptor];
      std::fill_n(steps, kDescriptor, kMaxByte);
      if (i < size) frame.locate(descriptors.get() + int64_t(members[i]) * kDescriptor, steps);
      int16_t* block = blocks_.get() + (first + i) / w * w * kDescriptor / 2 + i % w * 2;
      for (int d = 0; d < kDescriptor; d += 4)
        for (int odd = 0; odd < 2; ++odd)
          block[d / 4 * 2 * w + odd] = int16_t(uint16_t(steps[d + odd]) | uint16_t(steps[d + 2 + odd]) << 8);
    }
  }

  int64_t count_;
  int depth_ = 0;
  Buffer<Node> nodes_;
  Buffer<int32_t> start_;   // of a leaf, in keys
  Buffer<Frame> frames_;    // of a leaf
  Buffer<int16_t> blocks_;  // [block][component / 4][16][2], two components in each
  Buffer<int32_t> keys_;    // [block][16], padded indices; −1 for the filling
};

}  // namespace psal::PSAL_TARGET
PSAL_END_TARGET

#endif  // per-target include guard
