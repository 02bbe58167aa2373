// Scores of given matches, and their gradients.
//
// With g the gradient of score s(i, j), the pixels x = i + δ and y = j + δ of the two patches get
//     grad q[x] += α k[y] + β q[x],     grad k[y] += α q[x] + β' k[y],
// where α = 2 g, β = β' = −2 g for "l2"; α = g, β = β' = 0 for "dot"; and for "cosine" α = g / (‖q‖ ‖k‖),
// β = −g s / ‖q‖², β' = −g s / ‖k‖².

#if defined(PSAL_KERNELS_SCORE_INL_H_) == defined(PSAL_TARGET_TOGGLE)
#ifdef PSAL_KERNELS_SCORE_INL_H_
#undef PSAL_KERNELS_SCORE_INL_H_
#else
#define PSAL_KERNELS_SCORE_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <limits>

#include "../simd/lanes-inl.h"
#include "../simd/target.h"
#include "arguments.h"
#include "buffer-inl.h"
#include "comparison-inl.h"
#include "links-inl.h"
#include "padded_map-inl.h"
#include "parallel-inl.h"

PSAL_BEGIN_TARGET
namespace psal::PSAL_TARGET {

template <Similarity S, typename T>
void score_for(const ScoreArguments<T>& arguments) {
  const Problem<T>& problem = arguments.problem;
  Comparison<T> comparison(problem);
  comparison.make_query();
  Buffer<T> norms;
  if constexpr (S == Similarity::cosine) norms = inverse_norms(comparison.query, problem.patch);
  const int64_t queries = problem.query_shape.count(), keys = problem.key_shape.count();
  for_ranges(queries, 1024, [&](int64_t begin, int64_t end) {
    for (int64_t n = 0; n < arguments.neighbors; ++n)
      for (int64_t query = begin; query < end; ++query) {
        const int64_t key = checked(arguments.index[n * queries + query], keys);
        const int64_t number = comparison.query.frame.number(query);
        T& score = arguments.score[n * queries + query];
        score = -std::numeric_limits<T>::infinity();
        if (key < 0) continue;
        score = -comparison.template cost<S>(number, comparison.key.frame.number(key));
        if constexpr (S == Similarity::cosine) score *= norms[number];
      }
  });
}

template <typename T>
void score(const ScoreArguments<T>& arguments) {
  switch (arguments.problem.similarity) {
    case Similarity::l2: return score_for<Similarity::l2>(arguments);
    case Similarity::dot: return score_for<Similarity::dot>(arguments);
    case Similarity::cosine: return score_for<Similarity::cosine>(arguments);
  }
}

template <typename T>
class ScoreGradient {
 public:
  explicit ScoreGradient(const ScoreGradientArguments<T>& arguments)
      : arguments_(arguments),
        problem_(arguments.problem),
        links_(problem_.query_shape.count(), arguments.neighbors),
        query_factor_(problem_.query_shape.count(), T(0)),
        key_factor_(problem_.key_shape.count(), T(0)) {
    for (int axis = 0; axis < kAxes; ++axis) border_[axis] = problem_.patch.radius(axis);
    queries_ = Frame(problem_.query_shape, border_);
    keys_ = Frame(problem_.key_shape, border_);
  }

  void run() {
    set_weights();
    to_query();
    to_key();
  }

 private:
  PaddedMap<T> map_of(const View<const T>& view, const Shape& shape) const {
    return padded_map(view, shape, problem_.channels, border_, problem_.padding);
  }

  // α into the links, Σ β of each query and of each key.
  void set_weights() {
    const T* grad = arguments_.grad_score;
    const int64_t count = problem_.query_shape.count();
    if (problem_.similarity == Similarity::cosine) {
      const Buffer<T> q = inverse_norms(map_of(problem_.query, problem_.query_shape), problem_.patch);
      const Buffer<T> k = inverse_norms(map_of(problem_.key, problem_.key_shape), problem_.patch);
      links_.fill(arguments_.index, queries_, keys_, T(0), [&](int64_t place, int64_t key, int64_t query) {
        const T norm = q[queries_.number(query)];
        query_factor_[query] -= grad[place] * arguments_.score[place] * squared_unless_clamped(norm);
        return grad[place] * norm * k[key];
      });
      for (int64_t place = 0; place < count * arguments_.neighbors; ++place)
        if (const int64_t key = arguments_.index[place]; key >= 0)
          key_factor_[key] -= grad[place] * arguments_.score[place] * squared_unless_clamped(k[keys_.number(key)]);
      return;
    }
    const bool l2 = problem_.similarity == Similarity::l2;
    links_.fill(arguments_.index, queries_, keys_, T(0), [&](int64_t place, int64_t, int64_t query) {
      if (l2) query_factor_[query] -= 2 * grad[place];
      return l2 ? 2 * grad[place] : grad[place];
    });
    if (!l2) return;
    for (int64_t place = 0; place < count * arguments_.neighbors; ++place)
      if (const int64_t key = arguments_.index[place]; key >= 0) key_factor_[key] -= 2 * grad[place];
  }

  static T squared_unless_clamped(T inverse_norm) {
    return inverse_norm < T(0.999999 / kNormEpsilon) ? inverse_norm * inverse_norm : T(0);
  }

  void to_query() {
    const PaddedMap<T> keys = map_of(problem_.key, problem_.key_shape);
    write(links_, queries_, keys, query_factor_, problem_.query, arguments_.grad_query);
  }

  void to_key() {
    const PaddedMap<T> queries = map_of(problem_.query, problem_.query_shape);
    const Arrivals<T> arrivals(arguments_.index, links_, queries_, keys_);
    write(arrivals, keys_, queries, key_factor_, problem_.key, arguments_.grad_key);
  }

  // Σ α over the other map's pixels on the padded grid, folded, plus each pixel's own part, Σ β over its patches.
  template <typename Entries>
  void write(const Entries& entries, const Frame& frame, const PaddedMap<T>& other, const Buffer<T>& factor,
             const View<const T>& own, T* out) const {
    const int64_t channels = problem_.channels, width = frame.padded.size[2];
    PaddedMap<T> grad{frame, channels, Buffer<T>(frame.padded.count() * channels)};
    PaddedMap<T> own_factor{frame, 1, Buffer<T>(frame.padded.count())};
    for_ranges(frame.padded.rows(), 2, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row)
        for (int64_t x = 0; x < width; ++x) {
          const int64_t at[kAxes] = {row / frame.padded.size[1] - frame.border[0],
                                     row % frame.padded.size[1] - frame.border[1], x - frame.border[2]};
          collect(entries, frame.shape, other, at, grad.pixel(row * width + x));
          *own_factor.pixel(row * width + x) = window_sum(factor, frame.shape, at);
        }
    });
    fold_border(grad, problem_.padding, out);
    grad.data.release();
    if (problem_.similarity != Similarity::dot) add_own_part(own_factor, own, out);
  }

  template <typename Entries>
  void collect(const Entries& entries, const Shape& grid, const PaddedMap<T>& other, const int64_t (&at)[kAxes],
               T* total) const {
    const int64_t channels = problem_.channels;
    std::fill_n(total, channels, T(0));
    for (int64_t channel = 0; channel < channels; channel += kWidth<T>) {
      Lanes<T> sum[4] = {};
      for_window(entries, at, problem_.patch, grid, other.frame, [&](int64_t first, int64_t last, int64_t shift) {
        add_terms(other.data.get() + shift * channels + channel, channels, entries.at.get() + first,
                  entries.weight.get() + first, last - first, sum);
      });
      add_lanes(total + channel, channels - channel, sum);
    }
  }

  struct Pixels {  // numbers of pixels as entries, one each
    int64_t first(int64_t pixel) const { return pixel; }
  };

  T window_sum(const Buffer<T>& factor, const Shape& grid, const int64_t (&at)[kAxes]) const {
    T sum = 0;
    for_window(Pixels(), at, problem_.patch, grid, queries_, [&](int64_t first, int64_t last, int64_t) {
      for (int64_t i = first; i < last; ++i) sum += factor[i];
    });
    return sum;
  }

  void add_own_part(PaddedMap<T>& factor, const View<const T>& own, T* out) const {
    const Shape& shape = factor.frame.shape;
    const int64_t count = shape.count(), width = shape.size[2];
    Buffer<T> folded(count);
    fold_border(factor, problem_.padding, folded.get());
    for_ranges(shape.rows(), kRowsPerTask, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const T* source = own.data + row / shape.size[1] * own.stride[0] + row % shape.size[1] * own.stride[1];
        for (int64_t c = 0; c < problem_.channels; ++c)
          for (int64_t x = 0; x < width; ++x)
            out[c * count + row * width + x] +=
                folded[row * width + x] * source[c * own.channel_stride + x * own.stride[2]];
      }
    });
  }

  const ScoreGradientArguments<T>& arguments_;
  const Problem<T>& problem_;
  Links<T> links_;
  Buffer<T> query_factor_, key_factor_;
  int64_t border_[kAxes];
  Frame queries_, keys_;
};

template <typename T>
void score_gradient(const ScoreGradientArguments<T>& arguments) {
  ScoreGradient<T>(arguments).run();
}

}  // namespace psal::PSAL_TARGET
PSAL_END_TARGET

#endif  // per-target include guard
