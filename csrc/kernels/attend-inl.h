// Attention over given matches: softmax and weighted gather in one pass. Without aggregation the patch is one pixel;
// with it, pixel i takes the link of every pixel s around it, moved along: s → m becomes i → m + (i − s).

#if defined(PSAL_KERNELS_ATTEND_INL_H_) == defined(PSAL_TARGET_TOGGLE)
#ifdef PSAL_KERNELS_ATTEND_INL_H_
#undef PSAL_KERNELS_ATTEND_INL_H_
#else
#define PSAL_KERNELS_ATTEND_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "../simd/lanes-inl.h"
#include "../simd/target.h"
#include "arguments.h"
#include "buffer-inl.h"
#include "links-inl.h"
#include "padded_map-inl.h"
#include "parallel-inl.h"

PSAL_BEGIN_TARGET
namespace psal::PSAL_TARGET {

// The log of Σ e^logit in two parts, the largest logit and the rest: their sum would round away what tells logits of
// a million apart. The rest is +∞ where there is no mass: nothing weighs anything against that.
template <typename T>
struct Mass {
  T top, log_rest;
  T log_share(T logit) const { return (logit - top) - log_rest; }
};

template <typename T>
class Attention {
 public:
  explicit Attention(const AttendArguments<T>& arguments)
      : arguments_(arguments), links_(arguments.query_shape.count(), arguments.neighbors) {
    for (int axis = 0; axis < kAxes; ++axis) border_[axis] = arguments.patch.radius(axis);
    queries_ = Frame(arguments.query_shape, border_);
    keys_ = Frame(arguments.key_shape, border_);
    links_.fill(arguments.index, queries_, keys_, -kInfinity,
                [&](int64_t place, int64_t, int64_t) { return arguments.score[place] / arguments.temperature; });
    inside_ = Buffer<uint8_t>(keys_.padded.count(), 0);
    for (int64_t row = 0; row < keys_.shape.rows(); ++row)
      std::fill_n(inside_.get() + keys_.row_start(row), keys_.shape.size[2], uint8_t(1));
  }

  void forward() {
    const PaddedMap<T> value = map_of(arguments_.value, arguments_.key_shape);
    const int64_t width = queries_.shape.size[2], count = queries_.shape.count(), channels = arguments_.channels;
    for_ranges(queries_.shape.rows(), 2, [&](int64_t begin, int64_t end) {
      Buffer<T> line(width * channels);
      for (int64_t row = begin; row < end; ++row) {
        std::fill_n(line.get(), width * channels, T(0));
        for (int64_t x = 0; x < width; ++x) {
          const Mass<T> mass = forward_pixel(value, row, x, line.get() + x * channels);
          arguments_.log_mass[row * width + x] = mass.top;
          arguments_.log_mass[count + row * width + x] = mass.log_rest;
        }
        write_planes(line.get(), width, channels, arguments_.out + row * width, count);
      }
    });
  }

  void backward(const AttendGradientArguments<T>& gradient) {
    const PaddedMap<T> grad = map_of(gradient.grad_out, arguments_.query_shape);
    spread_over_queries(grad);
    to_score(grad, gradient.grad_score);
    to_value(grad, gradient.grad_value);
  }

 private:
  static constexpr T kInfinity = std::numeric_limits<T>::infinity();

  PaddedMap<T> map_of(const View<const T>& view, const Shape& shape) const {
    return padded_map(view, shape, arguments_.channels, border_, Padding::zeros);
  }

  // Collects the links that pixel x of a row gets from its window; those that leave the key's grid weigh −∞.
  Mass<T> forward_pixel(const PaddedMap<T>& value, int64_t row, int64_t x, T* total) const {
    const int64_t centre[kAxes] = {row / queries_.shape.size[1], row % queries_.shape.size[1], x};
    Terms<T> terms;
    T top = -kInfinity, mass = 0;
    const auto flush = [&] {
      const T highest = std::max(top, largest_weight(terms));
      if (highest > top) {
        const T shrink = std::exp(top - highest);
        mass *= shrink;
        for (int64_t c = 0; c < arguments_.channels; ++c) total[c] *= shrink;
        top = highest;
      }
      if (top > -kInfinity) {
        mass += to_exponentials(terms, top);
        terms.add_to(value, total);
      }
      terms.count = 0;
    };
    const auto logit = [&](int64_t e, int32_t at) { return inside_[at] ? links_.weight[e] : -kInfinity; };
    collect(links_, centre, queries_.shape, keys_, logit, terms, flush);
    if (!(mass > 0)) return {T(0), kInfinity};
    const T scale = 1 / mass;
    for (int64_t c = 0; c < arguments_.channels; ++c) total[c] *= scale;
    return {top, std::log(mass)};
  }

  // All terms of the window around `centre`, entry e with weight_of(e, where it leads to); flushes what it collects.
  template <typename Entries, typename Weight, typename Flush>
  void collect(const Entries& entries, const int64_t (&centre)[kAxes], const Shape& grid, const Frame& to,
               const Weight& weight_of, Terms<T>& terms, const Flush& flush) const {
    for_window(entries, centre, arguments_.patch, grid, to, [&](int64_t first, int64_t last, int64_t shift) {
      terms.add(
          first, last,
          [&](int64_t begin, int64_t end) {
            for (int64_t e = begin; e < end; ++e) {
              const int32_t at = int32_t(entries.at[e] + shift);
              terms.at[terms.count + e - begin] = at;
              terms.weight[terms.count + e - begin] = weight_of(e, at);
            }
          },
          flush);
    });
    flush();
  }

  static T largest_weight(Terms<T>& terms) {
    for (int64_t i = terms.count; i % kWidth<T>; ++i) terms.weight[i] = -kInfinity;
    Lanes<T> highest = broadcast(-kInfinity);
    for (int64_t i = 0; i < terms.count; i += kWidth<T>) highest = larger<T>(load(terms.weight + i), highest);
    return largest<T>(highest);
  }

  // Turns logits into e^(logit − top); returns their sum.
  static T to_exponentials(Terms<T>& terms, T top) {
    for (int64_t i = terms.count; i % kWidth<T>; ++i) terms.weight[i] = -kInfinity;
    Lanes<T> mass{};
    for (int64_t i = 0; i < terms.count; i += kWidth<T>) {
      const Lanes<T> e = exponential(load(terms.weight + i) - top);
      store(terms.weight + i, e);
      mass += e;
    }
    return sum<T>(mass);
  }

  // What every query's gradient needs of its forward pass, on the padded grid: its mass, and ⟨grad, out⟩.
  void spread_over_queries(const PaddedMap<T>& grad) {
    mass_ = Buffer<Mass<T>>(queries_.padded.count(), {T(0), kInfinity});
    along_out_ = Buffer<T>(queries_.padded.count(), T(0));
    const int64_t width = queries_.shape.size[2], count = queries_.shape.count();
    for_ranges(queries_.shape.rows(), kRowsPerTask, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t start = queries_.row_start(row);
        for (int64_t x = 0; x < width; ++x)
          mass_[start + x] = {arguments_.log_mass[row * width + x], arguments_.log_mass[count + row * width + x]};
        for (int64_t c = 0; c < arguments_.channels; ++c)
          for (int64_t x = 0; x < width; ++x)
            along_out_[start + x] += grad.pixel(start + x)[c] * arguments_.out[c * count + row * width + x];
      }
    });
  }

  // Link s → m was used by each pixel i = s + e of its window, for the value at m + e.
  void to_score(const PaddedMap<T>& grad, T* grad_score) {
    if (links_.neighbors * arguments_.patch.count() == 1) {  // a softmax over one neighbour is always 1
      std::fill_n(grad_score, queries_.shape.count(), T(0));
      return;
    }
    const PaddedMap<T> value = map_of(arguments_.value, arguments_.key_shape);
    const int64_t width = queries_.shape.size[2], count = queries_.shape.count(), k = links_.neighbors;
    for_ranges(queries_.shape.rows(), 2, [&](int64_t begin, int64_t end) {
      Buffer<T> weight(k * arguments_.patch.count() + kWidth<T>, -kInfinity);
      for (int64_t row = begin; row < end; ++row)
        for (int64_t x = 0; x < width; ++x) {
          const int64_t query = row * width + x, number = queries_.row_start(row) + x;
          weigh_uses(number, x, query, weight.get());
          for (int64_t n = 0; n < k; ++n) {
            T& gradient = grad_score[n * count + query];
            gradient = 0;
            if (links_.weight[query * k + n] == -kInfinity) continue;
            const T* weights = weight.get() + n * arguments_.patch.count();
            gradient = score_gradient(grad, value, number, links_.at[query * k + n] + x, weights);
            gradient /= arguments_.temperature;
          }
        }
    });
  }

  // The weight that each of a query's links has in each pixel of the window.
  void weigh_uses(int64_t number, int64_t x, int64_t query, T* weight) const {
    const int64_t side = arguments_.patch.size[2];
    T* next = weight;
    for (int64_t place = query * links_.neighbors; place < (query + 1) * links_.neighbors; ++place)
      for_patch_rows(number, links_.at[place] + x, [&](int64_t i, int64_t j) {
        for (int64_t e = 0; e < side; ++e)
          next[e] = inside_[j + e] ? mass_[i + e].log_share(links_.weight[place]) : -kInfinity;
        next += side;
      });
    for (T* at = weight; at < next; at += kWidth<T>) store(at, exponential(load(at)));
  }

  T score_gradient(const PaddedMap<T>& grad, const PaddedMap<T>& value, int64_t number, int64_t to,
                   const T* weight) const {
    const int64_t channels = grad.channels, whole = channels / kWidth<T> * kWidth<T>, side = arguments_.patch.size[2];
    const Bits<T> tail = first_lanes<T>(channels - whole);
    T own = 0;
    Lanes<T> total[2] = {};
    for_patch_rows(number, to, [&](int64_t i, int64_t j) {
      const T *g = grad.pixel(i), *v = value.pixel(j);
      for (int64_t e = 0; e < side; ++e, g += channels, v += channels) {
        own += weight[e] * along_out_[i + e];
        for (int64_t c = 0; c < whole; c += kWidth<T>) total[e % 2] += weight[e] * (load(g + c) * load(v + c));
        if (whole < channels) total[e % 2] += weight[e] * masked<T>(load(g + whole) * load(v + whole), tail);
      }
      weight += side;
    });
    return sum<T>(total[0] + total[1]) - own;
  }

  // Rows of the patches around a query and a key: body(number of the first pixel of one, and of the other).
  template <typename Body>
  void for_patch_rows(int64_t query, int64_t key, const Body& body) const {
    const Patch& patch = arguments_.patch;
    for (int64_t z = -patch.radius(0); z <= patch.radius(0); ++z)
      for (int64_t y = -patch.radius(1); y <= patch.radius(1); ++y)
        body(query + z * queries_.stride[0] + y * queries_.stride[1] - patch.radius(2),
             key + z * keys_.stride[0] + y * keys_.stride[1] - patch.radius(2));
  }

  // Key y was read by pixel s + e for each link s → y − e.
  void to_value(const PaddedMap<T>& grad, T* grad_value) {
    const Arrivals<T> arrivals(arguments_.index, links_, queries_, keys_);
    const int64_t width = keys_.shape.size[2], count = keys_.shape.count(), channels = arguments_.channels;
    for_ranges(keys_.shape.rows(), 2, [&](int64_t begin, int64_t end) {
      Buffer<T> line(width * channels);
      for (int64_t row = begin; row < end; ++row) {
        std::fill_n(line.get(), width * channels, T(0));
        for (int64_t x = 0; x < width; ++x) value_gradient(grad, arrivals, row, x, line.get() + x * channels);
        write_planes(line.get(), width, channels, grad_value + row * width, count);
      }
    });
  }

  void value_gradient(const PaddedMap<T>& grad, const Arrivals<T>& arrivals, int64_t row, int64_t x, T* total) const {
    const int64_t centre[kAxes] = {row / keys_.shape.size[1], row % keys_.shape.size[1], x};
    Terms<T> terms;
    const auto flush = [&] {
      to_exponentials(terms, T(0));
      terms.add_to(grad, total);
      terms.count = 0;
    };
    const auto logit = [&](int64_t e, int32_t at) { return mass_[at].log_share(arrivals.weight[e]); };
    collect(arrivals, centre, keys_.shape, queries_, logit, terms, flush);
  }

  const AttendArguments<T>& arguments_;
  Links<T> links_;
  int64_t border_[kAxes];
  Frame queries_, keys_;
  Buffer<uint8_t> inside_;
  Buffer<Mass<T>> mass_;
  Buffer<T> along_out_;
};

template <typename T>
void attend(const AttendArguments<T>& arguments) {
  Attention<T>(arguments).forward();
}

template <typename T>
void attend_gradient(const AttendGradientArguments<T>& arguments) {
  Attention<T>(arguments.forward).backward(arguments);
}

}  // namespace psal::PSAL_TARGET
PSAL_END_TARGET

#endif  // per-target include guard
