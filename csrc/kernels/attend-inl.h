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

// The log of a softmax's denominator, as two numbers: their sum would round away differences between scores of a
// million. Scores are divided by the temperature only after the largest is subtracted, so that nothing overflows.
template <typename T>
struct LogMass {
  T max_score = std::numeric_limits<T>::infinity();  // together with 0: the sum has no terms, every weight is 0
  T log_sum = 0;                                     // log Σ e^((score − max_score) / temperature)

  bool is_empty() const { return max_score == std::numeric_limits<T>::infinity() && log_sum == 0; }
  T log_weight(T score, T inverse_temperature) const { return (score - max_score) * inverse_temperature - log_sum; }
};

template <typename T>
class Attention {
 public:
  explicit Attention(const AttendArguments<T>& arguments)
      : arguments_(arguments), links_(arguments.query_shape.count(), arguments.neighbors) {
    for (int axis = 0; axis < kAxes; ++axis) border_[axis] = arguments.patch.radius(axis);
    queries_ = PaddedGrid(arguments.query_shape, border_);
    keys_ = PaddedGrid(arguments.key_shape, border_);
    links_.fill(arguments.index, queries_, keys_,
                [&](int64_t match, int64_t, int64_t) { return arguments.score[match]; });
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
      arguments_.log_mass[query] = mass.max_score;
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
  // larger score turns up, what was summed so far is scaled down. Links that leave the key's grid drop out. A score
  // that is NaN or +∞ makes the mean NaN, as do scores of −∞ alone.
  LogMass<T> sum_values(const PaddedMap<T>& value, const Coordinates& center, T* total) const {
    Terms<T> terms;
    T max_score = -kInfinity, mass = 0;
    bool any = false;
    const auto flush = [&] {
      any |= terms.size > 0;
      const T highest = std::max(max_score, largest_weight(terms));
      if (highest > max_score) {
        const T shrink = std::exp((max_score - highest) * arguments_.inverse_temperature);
        mass *= shrink;
        for (int64_t c = 0; c < arguments_.channels; ++c) total[c] *= shrink;
        max_score = highest;
      }
      const T origin = max_score == -kInfinity ? T(0) : max_score;
      mass += to_exponentials(terms, [&](Lanes<T> score) { return (score - origin) * arguments_.inverse_temperature; });
      terms.add_to(value, total);
      terms.size = 0;
    };
    collect(links_, center, queries_.shape, keys_, terms, flush,
            [&](int64_t link, int32_t key) { terms.push(key, links_.weight[link], is_key_[key]); });
    if (!any) return {};
    const T scale = 1 / mass;
    for (int64_t c = 0; c < arguments_.channels; ++c) total[c] *= scale;
    return {.max_score = max_score, .log_sum = std::log(mass)};
  }

  // Collects the terms of the window around `center`: push_term(e, p) adds that of link e, which leads to the padded
  // index p. Calls flush() whenever the terms are full, and at the end.
  template <typename AnyLinks, typename Flush, typename PushTerm>
  void collect(const AnyLinks& links, const Coordinates& center, const Shape& shape, const PaddedGrid& to,
               Terms<T>& terms, const Flush& flush, const PushTerm& push_term) const {
    for_window(links, center, arguments_.patch, shape, to, [&](int64_t first, int64_t last, int64_t shift) {
      const auto push_terms = [&](int64_t begin, int64_t end) {
        for (int64_t e = begin; e < end; ++e) push_term(e, int32_t(links.far_end[e] + shift));
      };
      terms.add(first, last, push_terms, flush);
    });
    flush();
  }

  static T largest_weight(Terms<T>& terms) {
    for (int64_t i = terms.size; i % kWidth<T>; ++i) terms.weight[i] = -kInfinity;
    Lanes<T> highest = broadcast(-kInfinity);
    for (int64_t i = 0; i < terms.size; i += kWidth<T>) highest = larger<T>(load(terms.weight + i), highest);
    return largest<T>(highest);
  }

  // Replaces weights x by e^f(x); returns their sum.
  template <typename Exponent>
  static T to_exponentials(Terms<T>& terms, const Exponent& f) {
    for (int64_t i = terms.size; i % kWidth<T>; ++i) terms.weight[i] = -kInfinity;
    Lanes<T> mass{};
    for (int64_t i = 0; i < terms.size; i += kWidth<T>) {
      const Lanes<T> e = exponential(f(load(terms.weight + i)));
      store(terms.weight + i, e);
      mass += e;
    }
    return sum<T>(mass);
  }

  // What gradients need of every query, by padded index: its mass, and ⟨grad, out⟩.
  void read_forward(const PaddedMap<T>& grad) {
    mass_ = Buffer<LogMass<T>>(queries_.padded.count(), LogMass<T>());
    grad_dot_out_ = Buffer<T>(queries_.padded.count(), T(0));
    const int64_t width = queries_.shape.size[2], count = queries_.shape.count();
    for_ranges(queries_.shape.rows(), kRowsPerTask, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t start = queries_.row_start(row);
        for (int64_t x = 0; x < width; ++x)
          mass_[start + x] = {.max_score = arguments_.log_mass[row * width + x],
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
    const int64_t width = queries_.shape.size[2], count = queries_.shape.count(), k = links_.neighbors;
    if (k * arguments_.patch.count() == 1) {  // a softmax over one link is constant
      for (int64_t query = 0; query < count; ++query) {
        const T only_if_finite = links_.weight[query] + grad_dot_out_[queries_.padded_index(query)];
        grad_score[query] = links_.is_missing(query) ? T(0) : only_if_finite - only_if_finite;  // 0, or else NaN
      }
      return;
    }
    const PaddedMap<T> value = map_of(arguments_.value, arguments_.key_shape);
    for_ranges(queries_.shape.rows(), kWindowRowsPerTask, [&](int64_t begin, int64_t end) {
      Buffer<T> weight(k * arguments_.patch.count() + kWidth<T>, -kInfinity);
      for (int64_t row = begin; row < end; ++row)
        for (int64_t x = 0; x < width; ++x) {
          const int64_t query = row * width + x, padded_index = queries_.row_start(row) + x;
          compute_weights(padded_index, x, query, weight.get());
          for (int64_t n = 0; n < k; ++n) {
            T& gradient = grad_score[n * count + query];
            gradient = 0;
            if (links_.is_missing(query * k + n)) continue;
            const T* weights = weight.get() + n * arguments_.patch.count();
            gradient = score_gradient(grad, value, padded_index, links_.far_end[query * k + n] + x, weights);
            gradient *= arguments_.inverse_temperature;
          }
        }
    });
  }

  // The weights of a query's links in each pixel of its window, [k][window]; −1 where there is no such pixel or key.
  void compute_weights(int64_t padded_index, int64_t x, int64_t query, T* weight) const {
    const int64_t side = arguments_.patch.size[2];
    T* next = weight;
    for (int64_t link = query * links_.neighbors; link < (query + 1) * links_.neighbors; ++link) {
      if (links_.is_missing(link)) {
        next += arguments_.patch.count();
        continue;
      }
      for_patch_rows(padded_index, links_.far_end[link] + x, [&](int64_t i, int64_t j) {
        for (int64_t e = 0; e < side; ++e) {
          const bool exists = is_key_[j + e] && !mass_[i + e].is_empty();
          next[e] = exists ? log_weight(i + e, links_.weight[link]) : kInfinity;
        }
        next += side;
      });
    }
    for (T* weights = weight; weights < next; weights += kWidth<T>) {
      const Lanes<T> logs = load(weights);
      store(weights, select(logs == kInfinity, broadcast(T(-1)), exponential(logs)));
    }
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
        if (weight[e] < 0) continue;
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
        to_exponentials(terms, [](Lanes<T> log_weight) { return log_weight; });
        terms.add_to(grad, total);
        terms.size = 0;
      };
      collect(links, center_of(keys_, row, x), keys_.shape, queries_, terms, flush, [&](int64_t link, int32_t query) {
        terms.push(query, log_weight(query, links.weight[link]), !mass_[query].is_empty());
      });
    });
  }

  // Of a link with this score, in the pixel with this padded index.
  T log_weight(int64_t padded_index, T score) const {
    return mass_[padded_index].log_weight(score, arguments_.inverse_temperature);
  }

  const AttendArguments<T>& arguments_;
  Links<T> links_;  // their weights are the scores
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
