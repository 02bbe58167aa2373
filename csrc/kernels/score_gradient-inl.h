// Gradients of scores.
//
// With g the gradient of score s(i, j), the pixels x = i + δ and y = j + δ of the two patches get
//     grad q[x] += α k[y] + β q[x],     grad k[y] += α q[x] + β' k[y],
// where α = 2 g, β = β' = −2 g for "l2"; α = g, β = β' = 0 for "dot"; and for "cosine" α = g / (‖q‖ ‖k‖),
// β = −g s / ‖q‖², β' = −g s / ‖k‖². The sum over α is a sum over links; that over β a factor of each pixel.

#if defined(PSAL_KERNELS_SCORE_GRADIENT_INL_H_) == defined(PSAL_TARGET_TOGGLE)
#ifdef PSAL_KERNELS_SCORE_GRADIENT_INL_H_
#undef PSAL_KERNELS_SCORE_GRADIENT_INL_H_
#else
#define PSAL_KERNELS_SCORE_GRADIENT_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "../simd/lanes-inl.h"
#include "../simd/target.h"
#include "arguments.h"
#include "buffer-inl.h"
#include "comparison-inl.h"
#include "links-inl.h"
#include "padded_map-inl.h"
#include "parallel-inl.h"
#include "tuning.h"

PSAL_BEGIN_TARGET
namespace psal::PSAL_TARGET {

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
    queries_ = PaddedGrid(problem_.query_shape, border_);
    keys_ = PaddedGrid(problem_.key_shape, border_);
  }

  // Each half makes the padded map that it reads and frees it again, so that only one exists at a time.
  void run() {
    set_weights();
    write_query_gradient();
    write_key_gradient();
  }

 private:
  PaddedMap<T> map_of(const View<const T>& view, const Shape& shape) const {
    return padded_map(view, shape, problem_.channels, border_, problem_.padding);
  }

  // Sets the links' weights to α, and sums β of each query and β' of each key.
  void set_weights() {
    const T* grad = arguments_.grad_score;
    const int64_t matches = problem_.query_shape.count() * arguments_.neighbors;
    if (problem_.similarity == Similarity::cosine) {
      const Buffer<T> q = inverse_norms(map_of(problem_.query, problem_.query_shape), problem_.patch);
      const Buffer<T> k = inverse_norms(map_of(problem_.key, problem_.key_shape), problem_.patch);
      links_.fill(arguments_.index, queries_, keys_, T(0), [&](int64_t match, int64_t key, int64_t query) {
        const T norm = q[queries_.padded_index(query)];
        query_factor_[query] -= grad[match] * arguments_.score[match] * squared_unless_clamped(norm);
        return grad[match] * norm * k[key];
      });
      for (int64_t match = 0; match < matches; ++match)
        if (const int64_t key = arguments_.index[match]; key >= 0)
          key_factor_[key] -=
              grad[match] * arguments_.score[match] * squared_unless_clamped(k[keys_.padded_index(key)]);
      return;
    }
    const bool l2 = problem_.similarity == Similarity::l2;
    links_.fill(arguments_.index, queries_, keys_, T(0), [&](int64_t match, int64_t, int64_t query) {
      if (l2) query_factor_[query] -= 2 * grad[match];
      return l2 ? 2 * grad[match] : grad[match];
    });
    if (!l2) return;
    for (int64_t match = 0; match < matches; ++match)
      if (const int64_t key = arguments_.index[match]; key >= 0) key_factor_[key] -= 2 * grad[match];
  }

  // A norm below kNormEpsilon counts as that constant, which has no gradient.
  static T squared_unless_clamped(T inverse_norm) {
    return inverse_norm < T(0.999999 / kNormEpsilon) ? inverse_norm * inverse_norm : T(0);
  }

  void write_query_gradient() {
    const PaddedMap<T> keys = map_of(problem_.key, problem_.key_shape);
    write(links_, queries_, keys, query_factor_, problem_.query, arguments_.grad_query);
  }

  void write_key_gradient() {
    const PaddedMap<T> queries = map_of(problem_.query, problem_.query_shape);
    const LinksByKey<T> links(arguments_.index, links_, queries_, keys_);
    write(links, keys_, queries, key_factor_, problem_.key, arguments_.grad_key);
  }

  // The gradient of a map given as `self`: Σ α · other over links and Σ β over the window, both on the padded grid,
  // then folded back; out = Σ α · other + Σ β · self.
  template <typename AnyLinks>
  void write(const AnyLinks& links, const PaddedGrid& grid, const PaddedMap<T>& other, const Buffer<T>& factor,
             const View<const T>& self, T* out) const {
    const int64_t channels = problem_.channels, width = grid.padded.size[2];
    PaddedMap<T> grad{.grid = grid, .channels = channels, .data = Buffer<T>(grid.padded.count() * channels)};
    PaddedMap<T> self_factor{.grid = grid, .channels = 1, .data = Buffer<T>(grid.padded.count())};
    for_ranges(grid.padded.rows(), kWindowRowsPerTask, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row)
        for (int64_t x = 0; x < width; ++x) {
          const Coordinates center = {{row / grid.padded.size[1] - grid.border[0],
                                       row % grid.padded.size[1] - grid.border[1], x - grid.border[2]}};
          sum_window(links, grid.shape, other, center, grad.pixel(row * width + x));
          *self_factor.pixel(row * width + x) = sum_window(factor, grid.shape, center);
        }
    });
    fold_border(grad, problem_.padding, out);
    grad.data.release();
    if (problem_.similarity != Similarity::dot) add_self_term(self_factor, self, out);
  }

  // total[c] = Σ α · other[c] over the links of a window.
  template <typename AnyLinks>
  void sum_window(const AnyLinks& links, const Shape& shape, const PaddedMap<T>& other, const Coordinates& center,
                  T* total) const {
    const int64_t channels = problem_.channels;
    std::fill_n(total, channels, T(0));
    for (int64_t channel = 0; channel < channels; channel += kWidth<T>) {
      Lanes<T> sum[4] = {};
      for_window(links, center, problem_.patch, shape, other.grid, [&](int64_t first, int64_t last, int64_t shift) {
        add_terms(other.data.get() + shift * channels + channel, channels, links.far_end.get() + first,
                  links.weight.get() + first, last - first, sum);
      });
      add_lanes(total + channel, channels - channel, sum);
    }
  }

  struct OnePerPixel {  // for_window() over pixels instead of links
    int64_t first(int64_t pixel) const { return pixel; }
  };

  // Σ β over the pixels of a window.
  T sum_window(const Buffer<T>& factor, const Shape& shape, const Coordinates& center) const {
    T sum = 0;
    for_window(OnePerPixel(), center, problem_.patch, shape, queries_, [&](int64_t first, int64_t last, int64_t) {
      for (int64_t i = first; i < last; ++i) sum += factor[i];
    });
    return sum;
  }

  void add_self_term(PaddedMap<T>& factor, const View<const T>& self, T* out) const {
    const Shape& shape = factor.grid.shape;
    const int64_t count = shape.count(), width = shape.size[2];
    Buffer<T> folded(count);
    fold_border(factor, problem_.padding, folded.get());
    for_ranges(shape.rows(), kRowsPerTask, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const T* source = self.data + row / shape.size[1] * self.stride[0] + row % shape.size[1] * self.stride[1];
        for (int64_t c = 0; c < problem_.channels; ++c)
          for (int64_t x = 0; x < width; ++x)
            out[c * count + row * width + x] +=
                folded[row * width + x] * source[c * self.channel_stride + x * self.stride[2]];
      }
    });
  }

  const ScoreGradientArguments<T>& arguments_;
  const Problem<T>& problem_;
  Links<T> links_;
  Buffer<T> query_factor_, key_factor_;  // Σ β, Σ β' by index
  Border border_;
  PaddedGrid queries_, keys_;
};

template <typename T>
void score_gradient(const ScoreGradientArguments<T>& arguments) {
  ScoreGradient<T>(arguments).run();
}

}  // namespace psal::PSAL_TARGET
PSAL_END_TARGET

#endif  // per-target include guard
