// First candidates from a tree over the key's descriptors.

#if defined(PSAL_KERNELS_TREE_SEEDS_INL_H_) == defined(PSAL_TARGET_TOGGLE)
#ifdef PSAL_KERNELS_TREE_SEEDS_INL_H_
#undef PSAL_KERNELS_TREE_SEEDS_INL_H_
#else
#define PSAL_KERNELS_TREE_SEEDS_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>

#include "../simd/target.h"
#include "arguments.h"
#include "best_k-inl.h"
#include "buffer-inl.h"
#include "comparison-inl.h"
#include "descriptor-inl.h"
#include "initial_matches-inl.h"
#include "padded_map-inl.h"
#include "parallel-inl.h"
#include "tree-inl.h"

PSAL_BEGIN_TARGET
namespace psal::PSAL_TARGET {

template <typename T>
class Seeds {
 public:
  Seeds(const Comparison<T>& comparison, const Problem<T>& problem, const Keys& keys, int64_t neighbors)
      : neighbors_(neighbors),
        key_norms_(norms(comparison.key, problem)),
        descriptors_(comparison.key, problem.patch, problem.similarity, key_norms_),
        tree_(describe(comparison.key, keys), keys.numbers, keys.count),
        leaf_(comparison.key.frame.padded.count(), -1) {
    tree_.for_each_key([&](int32_t number, int64_t leaf) { leaf_[number] = int32_t(leaf); });
    key_norms_.release();
  }

  void describe_queries(const PaddedMap<T>& query, const Problem<T>& problem) { query_norms_ = norms(query, problem); }

  // Reads the queries of one chunk in order: start a query, name leaves to look into, take the candidates.
  class Reader {
   public:
    Reader(const Seeds& seeds, const PaddedMap<T>& query)
        : seeds_(seeds), query_(query), distance_(seeds.neighbors_), found_(seeds.neighbors_) {}

    // Only keys with a descriptor closer than `bound` are of use; without a bound, k are found.
    void start(int64_t query, int64_t chunk_begin, int64_t chunk_end, float bound) {
      const int64_t width = query_.frame.shape.size[2], row = query / width;
      if (row != row_) {
        row_ = row;
        first_ = std::max(chunk_begin - row * width, int64_t(0));
        count_ = std::min(chunk_end - row * width, width) - first_;
        read_row(row);
      }
      const float* q = line_.get() + (query - row * width - first_) * kDescriptor;
      for (int d = 0; d < kDescriptor; ++d) q_[d] = q[d];
      filled_ = leaves_ = 0;
      bound_ = bound;
      look_into(home_[query - row * width - first_]);
    }

    // The leaf of a key that a neighbour's match points to.
    void look_at(int32_t key) {
      if (seeds_.leaf_[key] >= 0) look_into(seeds_.leaf_[key]);
    }

    template <typename Take>
    void finish(const Take& take) {
      const int64_t home = leaf_[0], all = seeds_.tree_.leaves();
      if (bound_ == std::numeric_limits<float>::infinity())
        for (int64_t next = 1; filled_ < seeds_.neighbors_ && next < all; ++next) look_into((home + next) % all);
      for (int64_t i = 0; i < filled_; ++i) take(found_[i], distance_[i]);
    }

   private:
    // Descriptors and leaves of a whole row at once: the way down the tree is long, but many go it side by side.
    void read_row(int64_t row) {
      const int64_t pitched = pitch(count_);
      if (!line_.size()) {
        planar_ = Buffer<float>(kDescriptor * pitched);
        line_ = Buffer<float>(kDescriptor * count_);
        home_ = Buffer<int32_t>(count_);
      }
      seeds_.descriptors_.row(query_, seeds_.query_norms_, false, row, first_, first_ + count_, scratch_,
                              planar_.get());
      for (int64_t x = 0; x < count_; ++x)
        for (int d = 0; d < kDescriptor; ++d) line_[x * kDescriptor + d] = planar_[d * pitched + x];
      for (int64_t x = 0; x < count_; ++x) home_[x] = int32_t(seeds_.tree_.leaf_of(line_.get() + x * kDescriptor));
    }

    void look_into(int64_t leaf) {
      constexpr int64_t kRemembered = 1 + kAxes;
      for (int64_t i = 0; i < std::min(leaves_, kRemembered); ++i)
        if (leaf_[i] == leaf) return;
      if (leaves_ < kRemembered) leaf_[leaves_] = leaf;
      ++leaves_;
      const auto limit = [&] { return filled_ < seeds_.neighbors_ ? bound_ : distance_[filled_ - 1]; };
      seeds_.tree_.scan(leaf, q_, limit, [&](int32_t number, float distance) {
        if (filled_ < seeds_.neighbors_) ++filled_;
        Neighbors<float>{found_.get(), distance_.get(), filled_}.insert(number, distance);
      });
    }

    const Seeds& seeds_;
    const PaddedMap<T>& query_;
    typename Descriptors<T>::Scratch scratch_;
    int64_t row_ = -1, first_ = 0, count_ = 0, filled_ = 0, leaves_ = 0;
    int64_t leaf_[1 + kAxes];
    float bound_ = 0, q_[kDescriptor];
    Buffer<float> planar_, line_, distance_;
    Buffer<int32_t> found_, home_;
  };

 private:
  static Buffer<T> norms(const PaddedMap<T>& map, const Problem<T>& problem) {
    return problem.similarity == Similarity::l2 ? Buffer<T>() : inverse_norms(map, problem.patch);
  }

  Buffer<float> describe(const PaddedMap<T>& key, const Keys& keys) const {
    const int64_t width = key.frame.shape.size[2], rows = key.frame.shape.rows();
    Buffer<int64_t> first(rows + 1);  // place of a row's first key among the open ones
    first[0] = 0;
    for (int64_t row = 0; row < rows; ++row) {
      const uint8_t* open = keys.open.get() + key.frame.row_start(row);
      first[row + 1] = first[row] + std::accumulate(open, open + width, int64_t(0));
    }
    Buffer<float> all(keys.count * kDescriptor);
    for_ranges(rows, 16, [&](int64_t begin, int64_t end) {
      typename Descriptors<T>::Scratch scratch;
      Buffer<float> line(kDescriptor * pitch(width));
      for (int64_t row = begin; row < end; ++row) {
        descriptors_.row(key, key_norms_, true, row, 0, width, scratch, line.get());
        const uint8_t* open = keys.open.get() + key.frame.row_start(row);
        float* to = all.get() + first[row] * kDescriptor;
        for (int64_t x = 0; x < width; ++x) {
          if (!open[x]) continue;
          for (int d = 0; d < kDescriptor; ++d) *to++ = line[d * pitch(width) + x];
        }
      }
    });
    return all;
  }

  int64_t neighbors_;
  Buffer<T> key_norms_, query_norms_;
  Descriptors<T> descriptors_;
  Tree tree_;
  Buffer<int32_t> leaf_;
};

}  // namespace psal::PSAL_TARGET
PSAL_END_TARGET

#endif  // per-target include guard
