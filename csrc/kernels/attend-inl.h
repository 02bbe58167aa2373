// Attention over given matches: softmax and weighted sum in one pass over the links, and its gradients.
//
// Without aggregation the window is one pixel. With it, pixel i uses the links of all pixels s in its window, moved
// along by i − s: the link s → m leads to m + (i − s).

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
#include "tuning.h"

PSAL_BEGIN_TARGET
namespace psal::PSAL_TARGET {

// log Σ e^logit as two numbers, because their sum would round away differences between logits of a million. Where the
// sum is empty, log_sum is +∞, so that every weight is 0.
template <typename T>
struct LogMass {
  T max_logit, log_sum;
  T log_weight(T logit) const { return (logit - max_logit) - log_sum; }
};

template <typename T>
class Attention {
 public:
  explicit Attention(const AttendArguments<T>& arguments)
      : arguments_(arguments), links_(arguments.query_shape.count(), arguments.neighbors) {
    for (int axis = 0; axis < kAxes; ++axis) border_[axis] = arguments.patch.radius(axis);
    queries_ = PaddedGrid(arguments.query_shape, border_);
    keys_ = PaddedGrid(arguments.key_shape, border_);
    links_.fill(arguments.index, queries_, keys_, -kInfinity,
                [&](int64_t match, int64_t, int64_t) { return arguments.score[match] / arguments.temperature; });
    is_key_ = Buffer<uint8_t>(keys_.padded.count(), 0);
    for (int64_t row = 0; row < keys_.shape.rows(); ++row)
      std::fill_n(is_key_.get() + keys_.row_start(row), keys_.shape.size[2], uint8_t(1));
  }

  void forward() {
    const PaddedMap<T> value = map_of(arguments_.value, arguments_.key_shape);
    const int64_t count = queries_.shape.count();
    write_rows(queries_, arguments_.out, [&](int64_t row, int64_t x, T* total) {
      const LogMass<T> mass = sum_values(value, center_of(queries_, row, x), total);
      const int64_t query = row * queries_.shape.size[2] + x;
      arguments_.log_mass[query] = mass.max_logit;
      arguments_.log_mass[count + query] = mass.log_sum;
    });
  }

  // The weights are computed again from log_mass: storing them would take k · window · N values.
  void backward(const AttendGradientArguments<T>& gradient) {
    const PaddedMap<T> grad = map_of(gradient.grad_out, arguments_.query_shape);
    read_forward(grad);
    write_score_gradient(grad, gradient.grad_score);
    write_value_gradient(grad, gradient.grad_value);
  }

 private:
  static constexpr T kInfinity = std::numeric_limits<T>::infinity();

  PaddedMap<T> map_of(const View<const T>& view, const Shape& shape) const {
    return padded_map(view, shape, arguments_.channels, border_, Padding::zeros);
  }

  static Coordinates center_of(const PaddedGrid& grid, int64_t row, int64_t x) {
    return {{row / grid.shape.size[1], row % grid.shape.size[1], x}};
  }

  // Calls sum(row, x, total) for every pixel of a grid, with zeros to add to, and writes the totals as planes.
  template <typename Sum>
  void write_rows(const PaddedGrid& grid, T* out, const Sum& sum) const {
    const int64_t width = grid.shape.size[2], channels = arguments_.channels;
    for_ranges(grid.shape.rows(), kWindowRowsPerTask, [&](int64_t begin, int64_t end) {
      Buffer<T> line(width * channels);
      for (int64_t row = begin; row < end; ++row) {
        std::fill_n(line.get(), width * channels, T(0));
        for (int64_t x = 0; x < width; ++x) sum(row, x, line.get() + x * channels);
        write_planes(line.get(), width, channels, out + row * width, grid.shape.count());
      }
    });
  }

  // The weighted mean of the values that a window's links lead to, with a running maximum (online softmax): when a
  // larger logit turns up, what was summed so far is scaled down. Links that leave the key's grid have the logit −∞.
  LogMass<T> sum_values(const PaddedMap<T>& value, const Coordinates& center, T* total) const {
    Terms<T> terms;
    T max_logit = -kInfinity, mass = 0;
    const auto flush = [&] {
      const T highest = std::max(max_logit, largest_weight(terms));
      if (highest > max_logit) {
        const T shrink = std::exp(max_logit - highest);
        mass *= shrink;
        for (int64_t c = 0; c < arguments_.channels; ++c) total[c] *= shrink;
        max_logit = highest;
      }
      if (max_logit > -kInfinity) {
        mass += to_exponentials(terms, max_logit);
        terms.add_to(value, total);
      }
      terms.size = 0;
    };
    const auto logit = [&](int64_t link, int32_t key) { return is_key_[key] ? links_.weight[link] : -kInfinity; };
    collect(links_, center, queries_.shape, keys_, logit, terms, flush);
    if (!(mass > 0)) return {.max_logit = T(0), .log_sum = kInfinity};
    const T scale = 1 / mass;
    for (int64_t c = 0; c < arguments_.channels; ++c) total[c] *= scale;
    return {.max_logit = max_logit, .log_sum = std::log(mass)};
  }

  // Collects the terms of the window around `center`: link e with weight_of(e, the padded index it leads to). Calls
  // flush() whenever the terms are full, and at the end.
  template <typename AnyLinks, typename Weight, typename Flush>
  void collect(const AnyLinks& links, const Coordinates& center, const Shape& shape, const PaddedGrid& to,
               const Weight& weight_of, Terms<T>& terms, const Flush& flush) const {
    for_window(links, center, arguments_.patch, shape, to, [&](int64_t first, int64_t last, int64_t shift) {
      const auto fill = [&](int64_t begin, int64_t end) {
        for (int64_t e = begin; e < end; ++e) {
          const int32_t padded_index = int32_t(links.far_end[e] + shift);
          terms.padded_index[terms.size + e - begin] = padded_index;
          terms.weight[terms.size + e - begin] = weight_of(e, padded_index);
        }
      };
      terms.add(first, last, fill, flush);
    });
    flush();
  }

  static T largest_weight(Terms<T>& terms) {
    for (int64_t i = terms.size; i % kWidth<T>; ++i) terms.weight[i] = -kInfinity;
    Lanes<T> highest = broadcast(-kInfinity);
    for (int64_t i = 0; i < terms.size; i += kWidth<T>) highest = larger<T>(load(terms.weight + i), highest);
    return largest<T>(highest);
  }

  // Replaces logits by e^(logit − max_logit); returns their sum.
  static T to_exponentials(Terms<T>& terms, T max_logit) {
    for (int64_t i = terms.size; i % kWidth<T>; ++i) terms.weight[i] = -kInfinity;
    Lanes<T> mass{};
    for (int64_t i = 0; i < terms.size; i += kWidth<T>) {
      const Lanes<T> e = exponential(load(terms.weight + i) - max_logit);
      store(terms.weight + i, e);
      mass += e;
    }
    return sum<T>(mass);
  }

  // What gradients need of every query, by padded index: its mass, and ⟨grad, out⟩.
  void read_forward(const PaddedMap<T>& grad) {
    mass_ = Buffer<LogMass<T>>(queries_.padded.count(), {.max_logit = T(0), .log_sum = kInfinity});
    grad_dot_out_ = Buffer<T>(queries_.padded.count(), T(0));
    const int64_t width = queries_.shape.size[2], count = queries_.shape.count();
    for_ranges(queries_.shape.rows(), kRowsPerTask, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t start = queries_.row_start(row);
        for (int64_t x = 0; x < width; ++x)
          mass_[start + x] = {.max_logit = arguments_.log_mass[row * width + x],
                              .log_sum = arguments_.log_mass[count + row * width + x]};
        for (int64_t c = 0; c < arguments_.channels; ++c)
          for (int64_t x = 0; x < width; ++x)
            grad_dot_out_[start + x] += grad.pixel(start + x)[c] * arguments_.out[c * count + row * width + x];
      }
    });
  }

  // grad score(s → m) = Σ_e w (⟨grad[s + e], value[m + e]⟩ − ⟨grad[s + e], out[s + e]⟩) / temperature over the offsets
  // e of the window, where w is the link's weight in pixel s + e.
  void write_score_gradient(const PaddedMap<T>& grad, T* grad_score) {
    if (links_.neighbors * arguments_.patch.count() == 1) {  // a softmax over one link is constant
      std::fill_n(grad_score, queries_.shape.count(), T(0));
      return;
    }
    const PaddedMap<T> value = map_of(arguments_.value, arguments_.key_shape);
    const int64_t width = queries_.shape.size[2], count = queries_.shape.count(), k = links_.neighbors;
    for_ranges(queries_.shape.rows(), kWindowRowsPerTask, [&](int64_t begin, int64_t end) {
      Buffer<T> weight(k * arguments_.patch.count() + kWidth<T>, -kInfinity);
      for (int64_t row = begin; row < end; ++row)
        for (int64_t x = 0; x < width; ++x) {
          const int64_t query = row * width + x, padded_index = queries_.row_start(row) + x;
          compute_weights(padded_index, x, query, weight.get());
          for (int64_t n = 0; n < k; ++n) {
            T& gradient = grad_score[n * count + query];
            gradient = 0;
            if (links_.weight[query * k + n] == -kInfinity) continue;
            const T* weights = weight.get() + n * arguments_.patch.count();
            gradient = score_gradient(grad, value, padded_index, links_.far_end[query * k + n] + x, weights);
            gradient /= arguments_.temperature;
          }
        }
    });
  }

  // The weights of a query's links in each pixel of its window, [k][window].
  void compute_weights(int64_t padded_index, int64_t x, int64_t query, T* weight) const {
    const int64_t side = arguments_.patch.size[2];
    T* next = weight;
    for (int64_t link = query * links_.neighbors; link < (query + 1) * links_.neighbors; ++link)
      for_patch_rows(padded_index, links_.far_end[link] + x, [&](int64_t i, int64_t j) {
        for (int64_t e = 0; e < side; ++e)
          next[e] = is_key_[j + e] ? mass_[i + e].log_weight(links_.weight[link]) : -kInfinity;
        next += side;
      });
    for (T* weights = weight; weights < next; weights += kWidth<T>) store(weights, exponential(load(weights)));
  }

  T score_gradient(const PaddedMap<T>& grad, const PaddedMap<T>& value, int64_t query, int64_t key,
                   const T* weight) const {
    const int64_t channels = grad.channels, whole = channels / kWidth<T> * kWidth<T>, side = arguments_.patch.size[2];
    const Bits<T> tail = first_lanes<T>(channels - whole);
    T along_out = 0;
    Lanes<T> total[2] = {};  // two accumulators, so that additions overlap
    for_patch_rows(query, key, [&](int64_t i, int64_t j) {
      const T *g = grad.pixel(i), *v = value.pixel(j);
      for (int64_t e = 0; e < side; ++e, g += channels, v += channels) {
        along_out += weight[e] * grad_dot_out_[i + e];
        for (int64_t c = 0; c < whole; c += kWidth<T>) total[e % 2] += weight[e] * (load(g + c) * load(v + c));
        if (whole < channels) total[e % 2] += weight[e] * masked<T>(load(g + whole) * load(v + whole), tail);
      }
      weight += side;
    });
    return sum<T>(total[0] + total[1]) - along_out;
  }

  // Calls body(i, j) for each row of the windows around a query and a key, with the padded indices of its first pixels.
  template <typename Body>
  void for_patch_rows(int64_t query, int64_t key, const Body& body) const {
    const Patch& patch = arguments_.patch;
    for (int64_t z = -patch.radius(0); z <= patch.radius(0); ++z)
      for (int64_t y = -patch.radius(1); y <= patch.radius(1); ++y)
        body(query + z * queries_.stride[0] + y * queries_.stride[1] - patch.radius(2),
             key + z * keys_.stride[0] + y * keys_.stride[1] - patch.radius(2));
  }

  // Key y was read by pixel s + e for each link s → y − e: grad value[y] = Σ w · grad[s + e].
  void write_value_gradient(const PaddedMap<T>& grad, T* grad_value) {
    const LinksByKey<T> links(arguments_.index, links_, queries_, keys_);
    write_rows(keys_, grad_value, [&](int64_t row, int64_t x, T* total) {
      Terms<T> terms;
      const auto flush = [&] {
        to_exponentials(terms, T(0));
        terms.add_to(grad, total);
        terms.size = 0;
      };
      const auto log_weight = [&](int64_t link, int32_t query) { return mass_[query].log_weight(links.weight[link]); };
      collect(links, center_of(keys_, row, x), keys_.shape, queries_, log_weight, terms, flush);
    });
  }

  const AttendArguments<T>& arguments_;
  Links<T> links_;  // their weights are the logits
  Border border_;
  PaddedGrid queries_, keys_;
  Buffer<uint8_t> is_key_;   // by padded index: 0 in the border
  Buffer<LogMass<T>> mass_;  // by the query's padded index; backward only, like the next
  Buffer<T> grad_dot_out_;
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
