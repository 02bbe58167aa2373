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
    is_key_ = inner_pixels(keys_);
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

  // By padded index: 1 in the inner grid, 0 in the border.
  static Buffer<uint8_t> inner_pixels(const PaddedGrid& grid) {
    Buffer<uint8_t> inner(grid.padded.count(), 0);
    for (int64_t row = 0; row < grid.shape.rows(); ++row)
      std::fill_n(inner.get() + grid.row_start(row), grid.shape.size[2], uint8_t(1));
    return inner;
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
        write_planes(line.get(), width, channels, out + row * width, grid.shape.count(), channels);
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
    collect(links_, center, queries_.shape, keys_, terms, flush, [&](int64_t link, int32_t key, int64_t at) {
      return terms.put(at, key, links_.weight[link], is_key_[key]);
    });
    if (!any) return {};
    const T scale = 1 / mass;
    for (int64_t c = 0; c < arguments_.channels; ++c) total[c] *= scale;
    return {.max_score = max_score, .log_sum = std::log(mass)};
  }

  // Collects the terms of the window around `center`: push_term(e, p, n) puts that of link e, which leads to the padded
  // index p, as term n, and returns whether it exists. Calls flush() whenever the terms are full, and at the end.
  template <typename AnyLinks, typename Flush, typename PushTerm>
  void collect(const AnyLinks& links, const Coordinates& center, const Shape& shape, const PaddedGrid& to,
               Terms<T>& terms, const Flush& flush, const PushTerm& push_term) const {
    for_window(links, center, arguments_.patch, shape, to, [&](int64_t first, int64_t last, int64_t shift) {
      const auto push_terms = [&](int64_t begin, int64_t end) {
        int64_t size = terms.size;  // a local variable stays in a register
        for (int64_t e = begin; e < end; ++e) size += push_term(e, int32_t(links.far_end[e] + shift), size);
        terms.size = size;
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
    max_score_ = Buffer<T>(queries_.padded.count(), T(0));
    log_sum_ = Buffer<T>(queries_.padded.count(), T(0));
    grad_dot_out_ = Buffer<T>(queries_.padded.count(), T(0));
    const int64_t width = queries_.shape.size[2], count = queries_.shape.count();
    for_ranges(queries_.shape.rows(), kRowsPerTask, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t start = queries_.row_start(row);
        std::copy_n(arguments_.log_mass + row * width, width, max_score_.get() + start);
        std::copy_n(arguments_.log_mass + count + row * width, width, log_sum_.get() + start);
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
      Buffer<T> weight(k * arguments_.patch.count() + kWidth<T>);
      Buffer<SharedWindow> window(k);
      for (int64_t row = begin; row < end; ++row)
        for (int64_t x = 0; x < width; ++x) {
          const int64_t query = row * width + x;
          int64_t size = 0;
          for (int64_t n = 0; n < k; ++n) {
            window[n] = shared_window(center_of(queries_, row, x), query * k + n);
            write_log_weights(window[n], links_.weight[query * k + n], weight.get() + size);
            size += window[n].shape.count();
          }
          for (int64_t i = 0; i < size; i += kWidth<T>) store(weight.get() + i, exponential(load(weight.get() + i)));
          const T* weights = weight.get();
          for (int64_t n = 0; n < k; ++n) {
            grad_score[n * count + query] = score_gradient(grad, value, window[n], weights);
            weights += window[n].shape.count();
          }
        }
    });
  }

  // The pixels of a link's window that are in the grids at both of its ends.
  struct SharedWindow {
    int64_t query, key;  // padded indices of the first of them
    Shape shape;
  };

  SharedWindow shared_window(const Coordinates& center, int64_t link) const {
    SharedWindow window = {.query = queries_.origin, .key = links_.far_end[link] + center[2], .shape = {}};
    for (int axis = 0; axis < kAxes; ++axis) window.query += center[axis] * queries_.stride[axis];
    if (links_.is_missing(link)) window.shape.size[2] = 0;
    if (links_.is_missing(link) || arguments_.patch.count() == 1) return window;
    const Coordinates key = keys_.coordinates(window.key);
    for (int axis = 0; axis < kAxes; ++axis) {
      const int64_t radius = arguments_.patch.radius(axis);
      const int64_t before = std::min(radius, std::min(center[axis], key[axis]));
      const int64_t after = std::min(queries_.shape.size[axis] - center[axis], keys_.shape.size[axis] - key[axis]);
      window.shape.size[axis] = before + std::min(radius + 1, after);
      window.query -= before * queries_.stride[axis];
      window.key -= before * keys_.stride[axis];
    }
    return window;
  }

  // Calls body(i, j) for each row of a window, with the padded indices of its first pixels.
  template <typename Body>
  void for_rows(const SharedWindow& window, const Body& body) const {
    for (int64_t z = 0; z < window.shape.size[0]; ++z)
      for (int64_t y = 0; y < window.shape.size[1]; ++y)
        body(window.query + z * queries_.stride[0] + y * queries_.stride[1],
             window.key + z * keys_.stride[0] + y * keys_.stride[1]);
  }

  // The logarithms of the weights that a link has in the pixels of its window, one after the other.
  void write_log_weights(const SharedWindow& window, T score, T* weight) const {
    const int64_t count = window.shape.size[2];
    for_rows(window, [&](int64_t i, int64_t) {
      for (int64_t e = 0; e < count; e += kWidth<T>) {  // the next row overwrites what is written behind the end
        const Lanes<T> above = (broadcast(score) - load(max_score_.get() + i + e)) * arguments_.inverse_temperature;
        store(weight + e, above - load(log_sum_.get() + i + e));
      }
      weight += count;
    });
  }

  T score_gradient(const PaddedMap<T>& grad, const PaddedMap<T>& value, const SharedWindow& window,
                   const T* weight) const {
    const int64_t channels = grad.channels, whole = channels / kWidth<T> * kWidth<T>, count = window.shape.size[2];
    const Bits<T> tail = first_lanes<T>(channels - whole), row_tail = first_lanes<T>((count - 1) % kWidth<T> + 1);
    Lanes<T> even{}, odd{}, along_out{};  // several accumulators, so that additions overlap
    for_rows(window, [&](int64_t i, int64_t j) {
      for (int64_t e = 0; e < count; e += kWidth<T>) {
        const Lanes<T> product = load(weight + e) * load(grad_dot_out_.get() + i + e);
        along_out += e + kWidth<T> < count ? product : masked<T>(product, row_tail);
      }
      const auto add = [&](Lanes<T>& total, int64_t e) {
        const T *g = grad.pixel(i + e), *v = value.pixel(j + e);
        for (int64_t c = 0; c < whole; c += kWidth<T>) total += weight[e] * (load(g + c) * load(v + c));
        if (whole < channels) total += weight[e] * masked<T>(load(g + whole) * load(v + whole), tail);
      };
      int64_t e = 0;
      for (; e + 2 <= count; e += 2) add(even, e), add(odd, e + 1);
      if (e < count) add(even, e);
      weight += count;
    });
    return sum<T>(even + odd - along_out) * arguments_.inverse_temperature;
  }

  // Key y was read by pixel s + e for each link s → y − e: grad value[y] = Σ w · grad[s + e].
  void write_value_gradient(const PaddedMap<T>& grad, T* grad_value) {
    const LinksByKey<T> links(arguments_.index, links_, queries_, keys_);
    const Buffer<uint8_t> is_query = inner_pixels(queries_);
    write_rows(keys_, grad_value, [&](int64_t row, int64_t x, T* total) {
      Terms<T> terms;
      const auto flush = [&] {
        to_exponentials(terms, [](Lanes<T> log_weight) { return log_weight; });
        terms.add_to(grad, total);
        terms.size = 0;
      };
      collect(links, center_of(keys_, row, x), keys_.shape, queries_, terms, flush,
              [&](int64_t link, int32_t query, int64_t at) {
                const T above = (links.weight[link] - max_score_[query]) * arguments_.inverse_temperature;
                return terms.put(at, query, above - log_sum_[query], is_query[query]);
              });
    });
  }

  const AttendArguments<T>& arguments_;
  Links<T> links_;  // their weights are the scores
  Border border_;
  PaddedGrid queries_, keys_;
  Buffer<uint8_t> is_key_;  // by padded index: 0 in the border
  // By the query's padded index; backward only.
  Buffer<T> max_score_, log_sum_;  // see LogMass
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
