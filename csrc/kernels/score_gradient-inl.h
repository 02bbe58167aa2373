// Gradients of scores.
//
// With g the gradient of score s(i, j), the pixels x = i + δ and y = j + δ of the two patches get
//     l2:           grad q[x] += 2 g (k[y] − q[x]),     grad k[y] += 2 g (q[x] − k[y])
//     dot, cosine:  grad q[x] += α k[y] + β q[x],       grad k[y] += α q[x] + β' k[y],
// where α = g, β = β' = 0 for "dot", and α = g / (‖q‖ ‖k‖), β = −g s / ‖q‖², β' = −g s / ‖k‖² for "cosine". The sum
// over α is a sum over links; that over β a factor of each pixel. For "l2" each difference is taken before it is
// summed: where the maps have a large offset, two separate sums would cancel and leave rounding errors.

#if defined(PSAL_KERNELS_SCORE_GRADIENT_INL_H_) == defined(PSAL_TARGET_TOGGLE)
#ifdef PSAL_KERNELS_SCORE_GRADIENT_INL_H_
#undef PSAL_KERNELS_SCORE_GRADIENT_INL_H_
#else
#define PSAL_KERNELS_SCORE_GRADIENT_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "../simd/lanes-inl.h"
#include "../simd/target.h"
#include "arguments.h"
#include "buffer-inl.h"
#include "comparison-inl.h"
#include "links-inl.h"
#include "padded_map-inl.h"
#include "parallel-inl.h"
#include "row_sum-inl.h"
#include "tuning.h"

PSAL_BEGIN_TARGET
namespace psal::PSAL_TARGET {

template <typename T>
class ScoreGradient {
 public:
  explicit ScoreGradient(const ScoreGradientArguments<T>& arguments)
      : arguments_(arguments), problem_(arguments.problem), links_(problem_.query_shape.count(), arguments.neighbors) {
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

  // Sets the links' weights, and for "cosine" sums β of each query and β' of each key.
  void set_weights() {
    const T* grad = arguments_.grad_score;
    if (problem_.similarity != Similarity::cosine) {
      const T factor = problem_.similarity == Similarity::l2 ? 2 : 1;
      links_.fill(arguments_.index, queries_, keys_,
                  [&](int64_t match, int64_t, int64_t) { return factor * grad[match]; });
      return;
    }
    query_factor_ = Buffer<T>(problem_.query_shape.count(), T(0));
    key_factor_ = Buffer<T>(problem_.key_shape.count(), T(0));
    const Buffer<T> q = inverse_norms(map_of(problem_.query, problem_.query_shape), problem_.patch);
    const Buffer<T> k = inverse_norms(map_of(problem_.key, problem_.key_shape), problem_.patch);
    links_.fill(arguments_.index, queries_, keys_, [&](int64_t match, int64_t key, int64_t query) {
      const T norm = q[queries_.padded_index(query)];
      query_factor_[query] -= grad[match] * arguments_.score[match] * squared_unless_clamped(norm);
      return grad[match] * norm * k[key];
    });
    for (int64_t match = 0; match < problem_.query_shape.count() * arguments_.neighbors; ++match)
      if (const int64_t key = arguments_.index[match]; key >= 0)
        key_factor_[key] -= grad[match] * arguments_.score[match] * squared_unless_clamped(k[keys_.padded_index(key)]);
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
    const LinksByKey<T> links(arguments_.index, links_, queries_, keys_);
    links_.release();
    const PaddedMap<T> queries = map_of(problem_.query, problem_.query_shape);
    write(links, keys_, queries, key_factor_, problem_.key, arguments_.grad_key);
  }

  // Writes the gradient of the map `self`. Padding repeats its pixels: a pixel gets the gradients of all that repeat
  // it.
  template <typename AnyLinks>
  void write(const AnyLinks& links, const PaddedGrid& grid, const PaddedMap<T>& other, const Buffer<T>& factor,
             const View<const T>& self, T* out) const {
    const Shape& shape = grid.shape;
    const int64_t channels = problem_.channels, width = shape.size[2];
    const Repeats repeats(grid, problem_.padding);
    for_ranges(shape.rows(), kWindowRowsPerTask, [&](int64_t begin, int64_t end) {
      Buffer<T> self_row(grid.padded.size[2] * channels);
      RowSum<T> gradient(grid, channels);
      for (int64_t row = begin; row < end; ++row) {
        const int64_t z = row / shape.size[1], y = row % shape.size[1];
        read_padded_row(self, grid, channels, problem_.padding, grid.padded_row(row), self_row.get());
        gradient.clear();
        repeats.for_each_row(z, y, [&](const Coordinates& center) {
          if (problem_.similarity == Similarity::l2)
            add_windows<true>(links, shape, other, center, self_row.get(), gradient);
          else
            add_windows<false>(links, shape, other, center, nullptr, gradient);
        });
        gradient.fold_border(grid, problem_.padding);
        if (problem_.similarity == Similarity::cosine)
          for (int64_t x = 0; x < width; ++x)
            add_self_term(repeats, grid, {{z, y, x}}, factor, self_row.get() + (grid.border[2] + x) * channels,
                          gradient.pixel(x));
        write_planes(gradient.pixel(0), width, channels, out + row * width, shape.count(), gradient.pitch);
      }
    });
  }

  // Adds Σ α · (other[c] − origin[c]) over the links of the windows around a row; without an origin, it is 0.
  template <bool HasOrigin, typename AnyLinks>
  void add_windows(const AnyLinks& links, const Shape& shape, const PaddedMap<T>& other, const Coordinates& row,
                   const T* origin, RowSum<T>& gradient) const {
    for_window_rows(row, problem_.patch, shape, other.grid, [&](int64_t first_pixel, int64_t shift) {
      gradient.template add<HasOrigin>(links, first_pixel, other.data.get() + shift * problem_.channels, origin);
    });
  }

  struct OnePerPixel {  // for_window() over pixels instead of links
    int64_t first(int64_t pixel) const { return pixel; }

    template <typename Body>
    void for_present(int64_t first, int64_t last, const Body& body) const {
      body(first, last);
    }
  };

  // grad[c] += Σ β · pixel[c] over the windows around a pixel and those that repeat it.
  void add_self_term(const Repeats& repeats, const PaddedGrid& grid, const Coordinates& at, const Buffer<T>& factor,
                     const T* pixel, T* grad) const {
    T sum = 0;
    repeats.for_each(at, [&](const Coordinates& center) {
      for_window(OnePerPixel(), center, problem_.patch, grid.shape, grid, [&](int64_t first, int64_t last, int64_t) {
        sum = std::accumulate(&factor[first], &factor[last], sum);
      });
    });
    if (sum == 0) return;  // the pixel may be NaN and in no matched patch
    for (int64_t c = 0; c < problem_.channels; ++c) grad[c] += sum * pixel[c];
  }

  const ScoreGradientArguments<T>& arguments_;
  const Problem<T>& problem_;
  Links<T> links_;
  Buffer<T> query_factor_, key_factor_;  // Σ β, Σ β' by index; "cosine" only
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
