// Attention over given matches: softmax and weighted gather in one pass. Without aggregation the patch is one pixel;
// with it, pixel i takes the link of every pixel s around it, moved along: s → m becomes i → m + (i − s).

template <typename T>
class Attention {
 public:
  explicit Attention(const AttendArguments<T>& arguments)
      : arguments_(arguments), links_(arguments.query_shape.count(), arguments.neighbors) {
    for (int axis = 0; axis < kAxes; ++axis) border_[axis] = arguments.patch.radius(axis);
    queries_ = Frame(arguments.query_shape, border_);
    keys_ = Frame(arguments.key_shape, border_);
    links_.fill(arguments.index, queries_, keys_, -kInfinity,
                [&](int64_t place, int32_t, int64_t) { return arguments.score[place] / arguments.temperature; });
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
        for (int64_t x = 0; x < width; ++x)
          arguments_.log_mass[row * width + x] = forward_pixel(value, row, x, line.get() + x * channels);
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
  // Returns the log of the mass, Σ e^logit, or +∞ where there is none: nothing weighs anything against that.
  T forward_pixel(const PaddedMap<T>& value, int64_t row, int64_t x, T* total) const {
    const int64_t k = links_.neighbors;
    const int64_t centre[kAxes] = {row / queries_.shape.size[1], row % queries_.shape.size[1], x};
    Terms<T> terms;
    T top = -kInfinity, mass = 0;
    const auto flush = [&] {
      T highest = top;
      for (int64_t i = 0; i < terms.count; ++i) highest = std::max(highest, terms.weight[i]);
      if (highest > top) {
        const T shrink = std::exp(top - highest);
        mass *= shrink;
        for (int64_t c = 0; c < arguments_.channels; ++c) total[c] *= shrink;
        top = highest;
      }
      if (top > -kInfinity) {
        mass += to_exponentials(terms, top);
        add_weighted(value, terms, total);
      }
      terms.count = 0;
    };
    for_window_rows(centre, arguments_.patch, queries_.shape, [&](int64_t z, int64_t y, int64_t begin, int64_t end) {
      const int64_t first = (z * queries_.shape.size[1] + y) * queries_.shape.size[2];
      const int64_t shift = (centre[0] - z) * keys_.stride[0] + (centre[1] - y) * keys_.stride[1] + x;
      for (int64_t s = begin; s < end; ++s)
        for (int64_t place = (first + s) * k; place < (first + s + 1) * k; ++place) {
          const int32_t at = int32_t(links_.at[place] + shift - s);
          if (!terms.room_for(1)) flush();
          terms.add(at, inside_[at] ? links_.weight[place] : -kInfinity);
        }
    });
    flush();
    if (!(mass > 0)) return kInfinity;
    const T scale = 1 / mass;
    for (int64_t c = 0; c < arguments_.channels; ++c) total[c] *= scale;
    return top + std::log(mass);
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

  // What every query's gradient needs of its forward pass, on the padded grid: log mass, and ⟨grad, out⟩.
  void spread_over_queries(const PaddedMap<T>& grad) {
    log_mass_ = Buffer<T>(queries_.padded.count(), kInfinity);
    along_out_ = Buffer<T>(queries_.padded.count(), T(0));
    const int64_t width = queries_.shape.size[2], count = queries_.shape.count();
    for_ranges(queries_.shape.rows(), kRowsPerTask, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t start = queries_.row_start(row);
        std::copy_n(arguments_.log_mass + row * width, width, log_mass_.get() + start);
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
    const Patch& patch = arguments_.patch;
    for_ranges(queries_.shape.rows(), 2, [&](int64_t begin, int64_t end) {
      Buffer<T> weight(patch.count() + kWidth<T>);
      for (int64_t row = begin; row < end; ++row)
        for (int64_t x = 0; x < width; ++x) {
          const int64_t query = row * width + x, number = queries_.row_start(row) + x;
          for (int64_t n = 0; n < k; ++n)
            grad_score[n * count + query] = links_.weight[query * k + n] == -kInfinity
                ? T(0)
                : score_gradient(grad, value, number, query * k + n, weight.get()) / arguments_.temperature;
        }
    });
  }

  T score_gradient(const PaddedMap<T>& grad, const PaddedMap<T>& value, int64_t number, int64_t place, T* weight) const {
    const Patch& patch = arguments_.patch;
    const T logit = links_.weight[place];
    const int64_t to = links_.at[place];
    int64_t t = 0;
    for_window([&](int64_t z, int64_t y) {
      const int64_t i = number + z * queries_.stride[0] + y * queries_.stride[1] - patch.radius(2);
      const int64_t j = to + z * keys_.stride[0] + y * keys_.stride[1] - patch.radius(2);
      for (int64_t x = 0; x < patch.size[2]; ++x) weight[t++] = inside_[j + x] ? logit - log_mass_[i + x] : -kInfinity;
    });
    for (int64_t b = 0; b < t; b += kWidth<T>) store(weight + b, exponential(load(weight + b)));
    T own = 0;
    Lanes<T> even{}, odd{};
    t = 0;
    const int64_t channels = grad.channels, whole = channels / kWidth<T> * kWidth<T>;
    const Bits<T> tail = first_lanes<T>(channels - whole);
    for_window([&](int64_t z, int64_t y) {
      const int64_t i = number + z * queries_.stride[0] + y * queries_.stride[1] - patch.radius(2);
      const int64_t j = to + z * keys_.stride[0] + y * keys_.stride[1] - patch.radius(2);
      for (int64_t x = 0; x < patch.size[2]; ++x, ++t) {
        own += weight[t] * along_out_[i + x];
        const T *g = grad.pixel(i + x), *v = value.pixel(j + x);
        for (int64_t c = 0; c < whole; c += kWidth<T>) {
          even += weight[t] * (load(g + c) * load(v + c));
          std::swap(even, odd);
        }
        if (whole < channels) {
          even += weight[t] * masked<T>(load(g + whole) * load(v + whole), tail);
          std::swap(even, odd);
        }
      }
    });
    return sum<T>(even + odd) - own;
  }

  // Rows of the patch window, relative to its centre.
  template <typename Body>
  void for_window(const Body& body) const {
    const Patch& patch = arguments_.patch;
    for (int64_t z = -patch.radius(0); z <= patch.radius(0); ++z)
      for (int64_t y = -patch.radius(1); y <= patch.radius(1); ++y) body(z, y);
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
      add_weighted(grad, terms, total);
      terms.count = 0;
    };
    for_window_rows(centre, arguments_.patch, keys_.shape, [&](int64_t z, int64_t y, int64_t begin, int64_t end) {
      const int64_t first = (z * keys_.shape.size[1] + y) * keys_.shape.size[2];
      const int64_t shift = (centre[0] - z) * queries_.stride[0] + (centre[1] - y) * queries_.stride[1] + x;
      for (int64_t m = begin; m < end; ++m)
        for (int32_t a = arrivals.start[first + m]; a < arrivals.start[first + m + 1]; ++a) {
          const int32_t i = int32_t(arrivals.from[a] + shift - m);
          if (!terms.room_for(1)) flush();
          terms.add(i, arrivals.weight[a] - log_mass_[i]);
        }
    });
    flush();
  }

  const AttendArguments<T>& arguments_;
  Links<T> links_;
  int64_t border_[kAxes];
  Frame queries_, keys_;
  Buffer<uint8_t> inside_;
  Buffer<T> log_mass_, along_out_;
};

template <typename T>
void attend(const AttendArguments<T>& arguments) {
  Attention<T>(arguments).forward();
}

template <typename T>
void attend_gradient(const AttendGradientArguments<T>& arguments) {
  Attention<T>(arguments.forward).backward(arguments);
}
