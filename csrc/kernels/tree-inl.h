// A kd-tree over descriptors. In its leaves, 16 keys are interleaved so that they are compared at once.

#if defined(PSAL_KERNELS_TREE_INL_H_) == defined(PSAL_TARGET_TOGGLE)
#ifdef PSAL_KERNELS_TREE_INL_H_
#undef PSAL_KERNELS_TREE_INL_H_
#else
#define PSAL_KERNELS_TREE_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "../simd/lanes-inl.h"
#include "../simd/target.h"
#include "buffer-inl.h"
#include "descriptor-inl.h"
#include "parallel-inl.h"
#include "patch_sum-inl.h"
#include "tuning.h"

PSAL_BEGIN_TARGET
namespace psal::PSAL_TARGET {

// The tree is complete: node i has the children 2 i and 2 i + 1, the root is node 1, all leaves have the same depth.
class Tree {
 public:
  // A subtree that has not been visited. A descriptor's distance from its box is the sum of the gaps.
  struct Branch {
    float distance;  // squared
    int64_t node;
    float gap[kDescriptor];  // squared, along each axis
  };

  // descriptors: [count][kDescriptor]; padded_indices: of the keys that they describe.
  Tree(const Buffer<float>& descriptors, const Buffer<int32_t>& padded_indices, int64_t count) : count_(count) {
    while ((count >> (depth_ + 1)) >= kLeafSize * 3 / 4) ++depth_;
    axis_ = Buffer<int32_t>(leaves(), 0);
    split_ = Buffer<float>(leaves(), 0.0f);
    Buffer<int32_t> order(count);
    for (int64_t i = 0; i < count; ++i) order[i] = int32_t(i);
    build(descriptors, order);
    fill_leaves(descriptors, padded_indices, order);
  }

  int64_t leaves() const { return int64_t(1) << depth_; }
  int64_t leaf_size(int64_t leaf) const { return start_[leaf + 1] - start_[leaf]; }
  int32_t key(int64_t leaf, int64_t i) const { return keys_[block_start_[leaf] * kWidth<float> + i]; }

  // The leaf that a descriptor belongs to.
  int64_t leaf_of(const float* q) const {
    int64_t node = 1;
    for (int level = 0; level < depth_; ++level) node = 2 * node + (q[axis_[node]] >= split_[node]);
    return node - leaves();
  }

  // Calls scan(leaf) for up to `count` ≥ 1 leaves that are closer than limit(), which scan() may lower: closest first,
  // beginning with the leaf that q belongs to.
  template <typename Limit, typename Scan>
  void visit_closest(const float (&q)[kDescriptor], int64_t count, const Limit& limit, const Scan& scan,
                     std::vector<Branch>& branches) const {
    branches.clear();
    Branch branch = {.distance = 0, .node = 1, .gap = {}};
    while (true) {
      while (branch.node < leaves()) {
        const int axis = axis_[branch.node];
        const float gap = q[axis] - split_[branch.node];
        const int64_t near = 2 * branch.node + (gap >= 0);
        const float distance = branch.distance + gap * gap - branch.gap[axis];
        if (distance < limit()) {
          Branch& far = branches.emplace_back(branch);
          far.node = near ^ 1;
          far.distance = distance;
          far.gap[axis] = gap * gap;
          std::push_heap(branches.begin(), branches.end(), is_farther);
        }
        branch.node = near;
      }
      scan(branch.node - leaves());
      if (--count == 0 || branches.empty()) return;
      std::pop_heap(branches.begin(), branches.end(), is_farther);
      branch = branches.back();
      branches.pop_back();
      if (branch.distance >= limit()) return;
    }
  }

  // Calls found(key, distance) for the keys of a leaf that are closer than limit(), which found() may lower.
  template <typename Limit, typename Found>
  void scan(int64_t leaf, const float (&q)[kDescriptor], const Limit& limit, const Found& found) const {
    constexpr int w = kWidth<float>;
    for (int64_t block = block_start_[leaf]; block < block_start_[leaf + 1]; ++block) {
      const float* descriptors = blocks_.get() + block * kDescriptor * w;
      Lanes<float> even{}, odd{};  // two accumulators, so that additions overlap
      const auto add = [&](int d) {
        even = add_pair<Similarity::l2, float>(even, broadcast(q[d]), load(descriptors + d * w));
        odd = add_pair<Similarity::l2, float>(odd, broadcast(q[d + 1]), load(descriptors + (d + 1) * w));
      };
      const auto so_far = [&] {  // clamped to a finite value, so that an infinite limit lets every key pass
        return smaller<float>(even + odd, broadcast(std::numeric_limits<float>::max()));
      };
      for (int d = 0; d < kLeafPrefilter; d += 2) add(d);
      if (!lanes_below(so_far(), limit())) continue;
      for (int d = kLeafPrefilter; d < kDescriptor; d += 2) add(d);
      const Lanes<float> distance = so_far();
      const int32_t* keys = keys_.get() + block * w;
      for (uint32_t close = lanes_below(distance, limit()); close; close &= close - 1) {
        const int lane = __builtin_ctz(close);
        if (distance[lane] < limit() && keys[lane] >= 0) found(keys[lane], distance[lane]);
      }
    }
  }

  // Calls body(key, leaf) for every key.
  template <typename Body>
  void for_each_key(const Body& body) const {
    for_ranges(leaves(), kLeavesPerTask, [&](int64_t begin, int64_t end) {
      for (int64_t leaf = begin; leaf < end; ++leaf)
        for (int64_t i = 0; i < leaf_size(leaf); ++i) body(keys_[block_start_[leaf] * kWidth<float> + i], leaf);
    });
  }

 private:
  // Splits every node near its median along its widest axis, level by level. `order` ends up sorted by leaf.
  void build(const Buffer<float>& descriptors, Buffer<int32_t>& order) {
    start_ = Buffer<int32_t>(leaves() + 1, 0);
    start_[leaves()] = int32_t(count_);
    Buffer<int32_t> spare(count_);
    for (int level = 0; level < depth_; ++level) {
      const int64_t nodes = int64_t(1) << level, span = leaves() >> level;
      for_each_task(nodes, [&](int64_t i) {
        const int32_t begin = start_[i * span], size = start_[(i + 1) * span] - begin;
        start_[i * span + span / 2] =
            begin + split(descriptors, order.get() + begin, spare.get() + begin, size, nodes + i);
      });
    }
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
    std::sort(values, values + samples);
    float threshold = values[samples / 2];
    int32_t left = partition(descriptors, keys, spare, size, axis, threshold);
    if (!balanced(left, size)) {  // many values equal the threshold: put them on the other side
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
    axis_[node] = axis;
    split_[node] = threshold;
    return left;
  }

  static bool is_farther(const Branch& a, const Branch& b) { return a.distance > b.distance; }

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

  // Lays leaves out in blocks of 16 keys, [component][key]; the last block of a leaf is filled up with far ones.
  void fill_leaves(const Buffer<float>& descriptors, const Buffer<int32_t>& padded_indices,
                   const Buffer<int32_t>& order) {
    constexpr int w = kWidth<float>;
    constexpr float kFar = 1e18f;  // its square is finite
    block_start_ = Buffer<int32_t>(leaves() + 1);
    block_start_[0] = 0;
    for (int64_t leaf = 0; leaf < leaves(); ++leaf)
      block_start_[leaf + 1] = block_start_[leaf] + int32_t((leaf_size(leaf) + w - 1) / w);
    const int64_t blocks = block_start_[leaves()];
    blocks_ = Buffer<float>(blocks * kDescriptor * w);
    keys_ = Buffer<int32_t>(blocks * w);
    for_ranges(leaves(), kLeavesPerTask, [&](int64_t begin, int64_t end) {
      for (int64_t leaf = begin; leaf < end; ++leaf) {
        const int64_t size = leaf_size(leaf), first = int64_t(block_start_[leaf]) * w;
        for (int64_t i = 0; i < (size + w - 1) / w * w; ++i) {
          float* block = blocks_.get() + (first + i) / w * w * kDescriptor + i % w;
          const int32_t key = i < size ? order[start_[leaf] + i] : -1;
          keys_[first + i] = key < 0 ? -1 : padded_indices[key];
          for (int d = 0; d < kDescriptor; ++d)
            block[d * w] = key < 0 ? kFar : descriptors[int64_t(key) * kDescriptor + d];
        }
      }
    });
  }

  int64_t count_;
  int depth_ = 0;
  Buffer<int32_t> axis_;         // of a node's split
  Buffer<float> split_;          // its threshold: smaller values go left
  Buffer<int32_t> start_;        // of a leaf, in keys
  Buffer<int32_t> block_start_;  // of a leaf, in blocks
  Buffer<float> blocks_;         // [block][component][16]
  Buffer<int32_t> keys_;         // [block][16], padded indices; −1 for the filling
};

}  // namespace psal::PSAL_TARGET
PSAL_END_TARGET

#endif  // per-target include guard
