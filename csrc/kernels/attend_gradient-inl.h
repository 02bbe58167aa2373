// Gradients of attention over given matches, with and without aggregation.
//
// With G = grad out, and w the weight that the link j → m has in pixel j + e:
//     grad score(j → m) = (1 / τ) Σ_e w (⟨G[j + e], v[m + e]⟩ − ⟨G[j + e], out[j + e]⟩)
//     grad v[y]         = Σ_e Σ_{links j → y − e} w G[j + e]
// Both are sums over the same products w G, so one pass over the rows of keys makes both. The weights are computed
// again from log_mass: storing them would take k · window · N values.

#if defined(PSAL_KERNELS_ATTEND_GRADIENT_INL_H_) == defined(PSAL_TARGET_TOGGLE)
#ifdef PSAL_KERNELS_ATTEND_GRADIENT_INL_H_
#undef PSAL_KERNELS_ATTEND_GRADIENT_INL_H_
#else
#define PSAL_KERNELS_ATTEND_GRADIENT_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <limits>

#include "../simd/lanes-inl.h"
#include "../simd/target.h"
#include "arguments.h"
#include "buffer-inl.h"
#include "links-inl.h"
#include "padded_map-inl.h"
#include "parallel-inl.h"
#include "row_sum-inl.h"
#include "tuning.h"

PSAL_BEGIN_TARGET
namespace psal::PSAL_TARGET {

template <typename T>
class AttentionGradient {
 public:
  explicit AttentionGradient(const AttendGradientArguments<T>& arguments)
      : arguments_(arguments), forward_(arguments.forward), window_(forward_.patch.size[2]) {
    for (int axis = 0; axis < kAxes; ++axis) border_[axis] = forward_.patch.radius(axis);
    queries_ = PaddedGrid(forward_.query_shape, border_);
    keys_ = PaddedGrid(forward_.key_shape, border_);
    rows_per_task_ = std::max(kGradientRowsPerTask, 2 * border_[1]);
  }

  void run() {
    Links<T> links(queries_.shape.count(), forward_.neighbors);
    links.fill(forward_.index, queries_, keys_, [&](int64_t match, int64_t, int64_t) { return forward_.score[match]; });
    const LinksByKey<T> by_key(forward_.index, links, queries_, keys_, true);
    links.release();
    grad_ = padded_map(arguments_.grad_out, queries_.shape, forward_.channels, border_, Padding::zeros);
    read_forward();
    for (auto& sums : score_sums_) sums = Buffer<T>(by_key.size(), T(0));
    for_each_task((keys_.shape.size[1] + rows_per_task_ - 1) / rows_per_task_,
                  [&](int64_t task) { sum_rows(by_key, task); });
    write_score_gradient(by_key);
  }

 private:
  static constexpr T kInfinity = std::numeric_limits<T>::infinity();

  // What the weights are computed from, by the query's padded index. Where no link has a weight, which includes the
  // border, log_sum is infinite.
  void read_forward() {
    const int64_t width = queries_.shape.size[2], count = queries_.shape.count();
    max_score_ = Buffer<T>(queries_.padded.count(), T(0));
    log_sum_ = Buffer<T>(queries_.padded.count(), kInfinity);
    grad_dot_out_ = Buffer<T>(queries_.padded.count(), T(0));
    is_whole_ = Buffer<uint8_t>(queries_.padded.count(), 0);
    for_ranges(queries_.shape.rows(), kRowsPerTask, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t start = queries_.row_start(row);
        const T *max_score = forward_.log_mass + row * width, *log_sum = max_score + count;
        for (int64_t c = 0; c < forward_.channels; ++c)
          for (int64_t x = 0; x < width; ++x)
            grad_dot_out_[start + x] += grad_.pixel(start + x)[c] * forward_.out[c * count + row * width + x];
        for (int64_t x = 0; x < width; ++x) {
          max_score_[start + x] = max_score[x];
          const bool no_links = max_score[x] == kInfinity && log_sum[x] == 0;  // see LogMass
          log_sum_[start + x] = no_links ? kInfinity : log_sum[x];
          if (no_links) grad_dot_out_[start + x] = 0;
        }
        if (is_inside(queries_, 0, row / queries_.shape.size[1]) &&
            is_inside(queries_, 1, row % queries_.shape.size[1]))
          for (int64_t x = border_[2]; x < width - border_[2]; ++x) is_whole_[start + x] = 1;
      }
    });
  }

  // Whether the window around a pixel with this coordinate is inside of the grid.
  static bool is_inside(const PaddedGrid& grid, int axis, int64_t at) {
    return at >= grid.border[axis] && at < grid.shape.size[axis] - grid.border[axis];
  }

  // What a task works with.
  struct Scratch {
    RowSum<T> gradient;  // of the values of a row of keys
    Buffer<T> values;    // of the row, padded
    Buffer<T> weight;    // of a batch of links, in each column of their windows
    T* score_sums;       // by link
  };

  // Rows of keys [task · rows_per_task_, …) of all slices. A link's window reaches into one such range or into two
  // consecutive ones. Even and odd tasks have separate sums, so no two tasks write to the same ones.
  void sum_rows(const LinksByKey<T>& links, int64_t task) {
    const int64_t channels = forward_.channels;
    const Shape& shape = keys_.shape;
    Scratch scratch = {.gradient = RowSum<T>(keys_, channels),
                       .values = Buffer<T>(keys_.padded.size[2] * channels),
                       .weight = Buffer<T>(kTermCapacity * window_ + kWidth<T>),
                       .score_sums = score_sums_[task % 2].get()};
    for (int64_t z = 0; z < shape.size[0]; ++z)
      for (int64_t y = task * rows_per_task_; y < std::min(shape.size[1], (task + 1) * rows_per_task_); ++y) {
        const int64_t row = z * shape.size[1] + y;
        read_padded_row(forward_.value, keys_, channels, Padding::zeros, keys_.padded_row(row), scratch.values.get());
        scratch.gradient.clear();
        for_window_rows({{z, y, 0}}, forward_.patch, shape, queries_,
                        [&](int64_t first_pixel, int64_t shift) { add_links(links, first_pixel, shift, scratch); });
        write_planes(scratch.gradient.pixel(0), shape.size[2], channels, arguments_.grad_value + row * shape.size[2],
                     shape.count(), scratch.gradient.pitch);
      }
  }

  // Links of a row of keys: [first, last), of columns [begin, end).
  struct Batch {
    int64_t first, last, begin, end;
    int64_t first_pixel;  // index of the row's first key

    // Calls body(link, x) for each of them.
    template <typename Body>
    void for_each(const LinksByKey<T>& links, const Body& body) const {
      for (int64_t x = begin; x < end; ++x) for_each(links, x, body);
    }

    template <typename Body>
    void for_each(const LinksByKey<T>& links, int64_t x, const Body& body) const {
      const int64_t to = std::min<int64_t>(links.first(first_pixel + x + 1), last);
      for (int64_t e = std::max<int64_t>(links.first(first_pixel + x), first); e < to; ++e) body(e, x);
    }
  };

  // Adds the links of a row of keys to the sums of a row in their windows, in batches.
  void add_links(const LinksByKey<T>& links, int64_t first_pixel, int64_t shift, Scratch& scratch) const {
    const int64_t last_link = links.first(first_pixel + keys_.shape.size[2]);
    int64_t x = 0;
    for (int64_t first = links.first(first_pixel); first < last_link; first += kTermCapacity) {
      Batch batch = {.first = first, .last = std::min(last_link, first + kTermCapacity), .first_pixel = first_pixel};
      while (links.first(first_pixel + x + 1) <= batch.first) ++x;
      batch.begin = x;
      while (links.first(first_pixel + x + 1) < batch.last) ++x;
      batch.end = x + 1;
      write_weights(links, batch, shift, scratch.weight.get());
      for_parts(window_, [&](auto columns, int64_t column) {
        for (int64_t channel = 0; channel < forward_.channels; channel += kRegisterWidth<T>)
          add_products<columns>(links, batch, shift, column, channel, scratch);
      });
    }
  }

  // weight[(e − batch.first) · window + d] is that of link e in column d of its window.
  void write_weights(const LinksByKey<T>& links, const Batch& batch, int64_t shift, T* weight) const {
    const T *max_score = max_score_.get() + shift, *log_sum = log_sum_.get() + shift;
    const T factor = forward_.inverse_temperature;
    const int64_t window = window_;  // a local variable stays in a register
    T* to = weight;
    batch.for_each(links, [&](int64_t e, int64_t x) {
      const int64_t i = links.far_end[e] + x;
      const Lanes<T> score = broadcast(links.weight[e]);
      for (int64_t d = 0; d < window; d += kWidth<T>) {  // the next link overwrites what is written behind the end
        const Lanes<T> log = load(log_sum + i + d);
        const Lanes<T> log_weight = (score - load(max_score + i + d)) * factor - log;
        store(to + d, select(log == kInfinity, broadcast(-kInfinity), log_weight));
      }
      to += window;
    });
    for (T* w = weight; w < to; w += kWidth<T>) store(w, exponential(load(w)));
  }

  // Adds to both sums what the links contribute in some columns of their windows, and in the channels of one register.
  template <int Columns>
  void add_products(const LinksByKey<T>& links, const Batch& batch, int64_t shift, int64_t column, int64_t channel,
                    Scratch& scratch) const {
    const int64_t channels = forward_.channels, width = keys_.shape.size[2], radius = border_[2], window = window_;
    const int64_t pitch = scratch.gradient.pitch, first_column = batch.begin + column;
    const T* grads = grad_.data.get() + (shift + column) * channels + channel;
    const T* values = scratch.values.get() + first_column * channels + channel;
    const T *weights = scratch.weight.get() + column, *dots = grad_dot_out_.get() + shift + column;
    const T* log_sums = log_sum_.get() + shift + column;
    const uint8_t* is_whole = is_whole_.get();
    const Bits<T> own_channels = first_lanes<T>(channels - channel);
    const Bits<T> all_columns = first_lanes<T>(channel ? 0 : Columns);  // ⟨grad, out⟩ is subtracted once
    T *score_sums = scratch.score_sums, *to = scratch.gradient.total.get() + first_column * pitch + channel;
    Register<T> gradient[Columns] = {};
    for (int64_t x = batch.begin; x < batch.end; ++x) {
      const int64_t low = std::clamp<int64_t>(radius - column - x, 0, Columns);  // columns [low, high) are of keys
      const int64_t high = std::clamp<int64_t>(width + radius - column - x, low, Columns);
      const bool whole_columns = high - low == Columns;
      const Bits<T> own_columns = whole_columns || channel ? all_columns : first_lanes<T>(high) - first_lanes<T>(low);
      batch.for_each(links, x, [&](int64_t e, int64_t) {
        const int64_t query = links.far_end[e] + x;
        const T *grad = grads + query * channels, *weight = weights + (e - batch.first) * window;
        Register<T> along_values{};
        const auto add = [&](auto d) {
          const Register<T> product = load_register(grad + d * channels) * weight[d];
          gradient[d] += product;
          along_values += product * load_register(values + d * channels);
        };
        if (whole_columns && is_whole[query])
          unrolled<Columns>(add);
        else
          unrolled<Columns>([&](auto d) {
            if (d >= low && d < high && log_sums[query + d] != kInfinity) add(d);
          });
        Lanes<T> along{};
        along.part[0] = along_values;
        const Lanes<T> along_out = load(weight) * load(dots + query);
        score_sums[e] += sum<T>(masked<T>(along, own_channels) - masked<T>(along_out, own_columns));
      });
      move_on<T>(gradient, to);
      to += pitch;
      values += channels;
    }
    unrolled<Columns - 1>([&](auto d) { add_register<T>(to + d * pitch, gradient[d]); });
  }

  void write_score_gradient(const LinksByKey<T>& links) const {
    const int64_t count = queries_.shape.count(), k = forward_.neighbors;
    T* grad_score = arguments_.grad_score;
    if (links.size() < k * count) std::fill_n(grad_score, k * count, T(0));  // links are missing
    const bool is_constant = k * forward_.patch.count() == 1;                // a softmax over one link
    for_ranges(links.size(), kQueriesPerTask, [&](int64_t begin, int64_t end) {
      for (int64_t e = begin; e < end; ++e) {
        const T along = score_sums_[0][e] + score_sums_[1][e];
        grad_score[links.match[e]] = is_constant ? along * 0 : along * forward_.inverse_temperature;
      }
    });
  }

  const AttendGradientArguments<T>& arguments_;
  const AttendArguments<T>& forward_;
  const int64_t window_;  // columns
  Border border_;
  PaddedGrid queries_, keys_;
  int64_t rows_per_task_;
  PaddedMap<T> grad_;
  // By the query's padded index.
  Buffer<T> max_score_, log_sum_;  // see LogMass
  Buffer<T> grad_dot_out_;
  Buffer<uint8_t> is_whole_;  // whether the window is inside of the grid
  Buffer<T> score_sums_[2];   // by link, of even and of odd tasks
};

template <typename T>
void attend_gradient(const AttendGradientArguments<T>& arguments) {
  AttentionGradient<T>(arguments).run();
}

}  // namespace psal::PSAL_TARGET
PSAL_END_TARGET

#endif  // per-target include guard
