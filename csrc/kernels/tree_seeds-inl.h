// First candidates of every query, from a tree over the keys' descriptors.

#if defined(PSAL_KERNELS_TREE_SEEDS_INL_H_) == defined(PSAL_TARGET_TOGGLE)
#ifdef PSAL_KERNELS_TREE_SEEDS_INL_H_
#undef PSAL_KERNELS_TREE_SEEDS_INL_H_
#else
#define PSAL_KERNELS_TREE_SEEDS_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>

#include "../simd/target.h"
#include "arguments.h"
#include "buffer-inl.h"
#include "comparison-inl.h"
#include "descriptor-inl.h"
#include "lane_minima-inl.h"
#include "padded_map-inl.h"
#include "parallel-inl.h"
#include "patch_sum-inl.h"
#include "tree-inl.h"
#include "tuning.h"
#include "valid_keys-inl.h"

PSAL_BEGIN_TARGET
namespace psal::PSAL_TARGET {

template <typename T>
class TreeSeeds {
 public:
  TreeSeeds(const PaddedMap<T>& key, const Problem<T>& problem, const ValidKeys& keys, int64_t neighbors)
      : TreeSeeds(key, problem, keys, neighbors, norms(key, problem)) {}

  const SeedPlan& plan() const { return plan_; }

  // The inverse norms of the query's patches, which a Reader needs; empty for "l2".
  Buffer<T> inverse_norms_for(const PaddedMap<T>& query) const { return norms(query, problem_); }

  // Finds candidates for the queries of one chunk, in order: start() a query, scan further leaves, finish().
  class Reader {
   public:
    Reader(const TreeSeeds& seeds, const PaddedMap<T>& query, const Buffer<T>& query_norms, int64_t chunk_begin,
           int64_t chunk_end)
        : seeds_(seeds),
          query_(query),
          query_norms_(query_norms),
          chunk_begin_(chunk_begin),
          chunk_end_(chunk_end),
          minima_(seeds.neighbors_ + seeds.plan_.spare) {}

    // Begins a query and scans its own leaf. Of all leaves scanned, the closest keys with a descriptor distance below
    // `bound` are kept.
    void start(int64_t query, float bound) {
      const int64_t width = query_.grid.shape.size[2], row = query / width;
      if (row != row_) {
        row_ = row;
        first_ = std::max(chunk_begin_ - row * width, int64_t(0));
        count_ = std::min(chunk_end_ - row * width, width) - first_;
        describe_row(row);
      }
      const int64_t x = query - row * width - first_;
      if (leaf_[x] < 0) find_leaf(x);
      for (int d = 0; d < kDescriptor; ++d) q_[d] = descriptors_[x * kDescriptor + d];
      scanned_ = 0;
      bound_ = bound;
      minima_.clear(bound);
      scan(leaf_[x]);
    }

    // Scans the leaf that holds this key; does nothing if the key is not valid.
    void scan_leaf_of(int32_t key) {
      if (seeds_.leaf_of_key_[key] >= 0) scan(seeds_.leaf_of_key_[key]);
    }

    // Scans the leaves that the plan adds.
    void scan_closest_leaves() {
      const float limit = bound_;
      seeds_.tree_.visit_closest(q_, scanned_leaf_[0], seeds_.plan_.leaves, limit, [&](int64_t leaf) { scan(leaf); });
    }

    // Calls take(key, distance) for the keys found, closest first.
    template <typename Take>
    void finish(const Take& take) {
      int64_t left = seeds_.neighbors_ + seeds_.plan_.spare;
      minima_.take_smallest([&](float distance, int32_t block, int lane) {
        const int32_t key = seeds_.tree_.key_of_lane(block, lane);
        if (key < 0) return true;
        take(key, distance);
        return --left > 0;
      });
    }

    // Calls take(key) for the keys of the query's own leaf, and of further ones, until it returns false.
    template <typename Take>
    void take_until_enough(const Take& take) const {
      const Tree& tree = seeds_.tree_;
      for (int64_t next = 0; next < tree.leaves(); ++next) {
        const int64_t leaf = (scanned_leaf_[0] + next) % tree.leaves();
        for (int64_t i = 0; i < tree.leaf_size(leaf); ++i)
          if (!take(tree.key(leaf, i))) return;
      }
    }

   private:
    // The descriptors of a whole row at once, and the leaves of the pixels that may look up the tree: each descent is a
    // chain of dependent loads, but those of different pixels overlap.
    void describe_row(int64_t row) {
      const int64_t pitched = pitch(count_);
      if (!descriptors_.size()) {
        planes_ = Buffer<float>(kDescriptor * pitched);
        descriptors_ = Buffer<float>(kDescriptor * count_);
        leaf_ = Buffer<int32_t>(count_);
      }
      seeds_.descriptors_.row({.map = query_, .inverse_norm = query_norms_, .is_key = false},
                              {.row = row, .begin = first_, .end = first_ + count_}, scratch_, planes_.get());
      for (int64_t x = 0; x < count_; ++x) leaf_[x] = -1;
      const int64_t period = seeds_.plan_.poor_period,
                    sum = row / query_.grid.shape.size[1] + row % query_.grid.shape.size[1] + first_;
      for (int64_t x = (period - sum % period) % period; x < count_; x += period) find_leaf(x);
    }

    // Of a pixel of the row.
    void find_leaf(int64_t x) {
      const int64_t pitched = pitch(count_);
      float* descriptor = descriptors_.get() + x * kDescriptor;
      for (int d = 0; d < kDescriptor; ++d) descriptor[d] = planes_[d * pitched + x];
      leaf_[x] = int32_t(seeds_.tree_.leaf_of(descriptor));
    }

    void scan(int64_t leaf) {
      for (int64_t i = 0; i < std::min(scanned_, kRemembered); ++i)
        if (scanned_leaf_[i] == leaf) return;
      if (scanned_ < kRemembered) scanned_leaf_[scanned_] = leaf;
      ++scanned_;
      seeds_.tree_.scan(leaf, q_, minima_);
    }

    // The query's own leaf, its predecessors', and those of a plan.
    static constexpr int64_t kRemembered = 1 + kAxes + Tree::kMaxVisited;

    const TreeSeeds& seeds_;
    const PaddedMap<T>& query_;
    const Buffer<T>& query_norms_;
    const int64_t chunk_begin_, chunk_end_;
    typename Descriptors<T>::Scratch scratch_;
    int64_t row_ = -1, first_ = 0, count_ = 0;  // pixels [first, first + count) of this row have descriptors
    Buffer<float> planes_, descriptors_;        // of them: [descriptor][pixel], [pixel][descriptor]
    Buffer<int32_t> leaf_;                      // of them
    float bound_ = 0, q_[kDescriptor];          // of the current query
    int64_t scanned_ = 0, scanned_leaf_[kRemembered];
    LaneMinima minima_;
  };

 private:
  TreeSeeds(const PaddedMap<T>& key, const Problem<T>& problem, const ValidKeys& keys, int64_t neighbors,
            const Buffer<T>& key_norms)
      : problem_(problem),
        neighbors_(neighbors),
        descriptors_(key, problem.patch, problem.similarity, key_norms),
        tree_(describe(key, key_norms, keys), keys.padded_indices, keys.count),
        leaf_of_key_(key.grid.padded.count(), -1) {
    tree_.for_each_key([&](int32_t key, int64_t leaf) { leaf_of_key_[key] = int32_t(leaf); });
    plan_ = choose_plan(key, keys.count);
  }

  SeedPlan choose_plan(const PaddedMap<T>& key, int64_t key_count) const {
    if (noisiness(key) > kNoiseThreshold) return kNoisePlan;
    const bool few_queries = problem_.query_shape.count() * kFewQueries <= key_count;
    return problem_.patch.count() <= kSmallPatch || few_queries ? kThoroughPlan : kUsualPlan;
  }

  // How much alike the distances of similar patches are: the smallest of a few keys of a leaf over their mean, averaged
  // over some leaves. Near 1 for noise, which has no structure that a search could follow.
  double noisiness(const PaddedMap<T>& key) const {
    constexpr int64_t kSamples = 64, kCompared = 16;
    const Runs runs = box_runs<T>(problem_.patch.size, problem_.channels, key.grid, key.grid);
    const int64_t corner = patch_corner(key, problem_.patch);
    double ratios = 0;
    int64_t count = 0;
    for (int64_t s = 0; s < std::min(kSamples, tree_.leaves()); ++s) {
      const int64_t leaf = s * tree_.leaves() / std::min(kSamples, tree_.leaves());
      if (tree_.leaf_size(leaf) < kCompared) continue;
      const T* first = key.pixel(tree_.key(leaf, 0)) - corner;
      double smallest = std::numeric_limits<double>::infinity(), mean = 0;
      for (int64_t i = 1; i < kCompared; ++i) {
        const T* other = key.pixel(tree_.key(leaf, i)) - corner;
        const double distance = double(sum_runs<Similarity::l2, false>(first, other, runs, T(0)));
        smallest = std::min(smallest, distance);
        mean += distance / (kCompared - 1);
      }
      ++count;
      if (mean > 0 && std::isfinite(mean)) ratios += smallest / mean;
    }
    return count ? ratios / double(count) : 0;
  }

  static Buffer<T> norms(const PaddedMap<T>& map, const Problem<T>& problem) {
    return problem.similarity == Similarity::l2 ? Buffer<T>() : inverse_norms(map, problem.patch);
  }

  // Descriptors of the valid keys, [count][kDescriptor].
  Buffer<float> describe(const PaddedMap<T>& key, const Buffer<T>& key_norms, const ValidKeys& keys) const {
    const int64_t width = key.grid.shape.size[2], rows = key.grid.shape.rows();
    Buffer<int64_t> first(rows + 1);  // of a row, among the valid keys
    first[0] = 0;
    for (int64_t row = 0; row < rows; ++row) {
      const uint8_t* is_valid = keys.is_valid.get() + key.grid.row_start(row);
      first[row + 1] = first[row] + std::accumulate(is_valid, is_valid + width, int64_t(0));
    }
    Buffer<float> all(keys.count * kDescriptor);
    for_ranges(rows, kDescriptorRowsPerTask, [&](int64_t begin, int64_t end) {
      typename Descriptors<T>::Scratch scratch;
      Buffer<float> planes(kDescriptor * pitch(width));
      for (int64_t row = begin; row < end; ++row) {
        descriptors_.row({.map = key, .inverse_norm = key_norms, .is_key = true},
                         {.row = row, .begin = 0, .end = width}, scratch, planes.get());
        const uint8_t* is_valid = keys.is_valid.get() + key.grid.row_start(row);
        float* to = all.get() + first[row] * kDescriptor;
        for (int64_t x = 0; x < width; ++x) {
          if (!is_valid[x]) continue;
          for (int d = 0; d < kDescriptor; ++d) *to++ = planes[d * pitch(width) + x];
        }
      }
    });
    return all;
  }

  const Problem<T>& problem_;
  const int64_t neighbors_;
  const Descriptors<T> descriptors_;
  const Tree tree_;
  Buffer<int32_t> leaf_of_key_;  // by padded index; −1 where there is no valid key
  SeedPlan plan_;
};

}  // namespace psal::PSAL_TARGET
PSAL_END_TARGET

#endif  // per-target include guard
