// Scores of given matches, and their gradients.
//
// With g the gradient of score s(i, j), the pixels x = i + δ and y = j + δ of the two patches get
//     grad q[x] += α k[y] + β q[x],     grad k[y] += α q[x] + β' k[y],
// where α = 2 g, β = β' = −2 g for "l2"; α = g, β = β' = 0 for "dot"; and for "cosine" α = g / (‖q‖ ‖k‖),
// β = −g s / ‖q‖², β' = −g s / ‖k‖².

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
      : arguments_(arguments), problem_(arguments.problem),
        links_(problem_.query_shape.count(), arguments.neighbors),
        query_factor_(problem_.query_shape.count(), T(0)), key_factor_(problem_.key_shape.count(), T(0)) {
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
      links_.fill(arguments_.index, queries_, keys_, T(0), [&](int64_t place, int32_t at, int64_t query) {
        const T norm = q[queries_.number(query)];
        query_factor_[query] -= grad[place] * arguments_.score[place] * squared_unless_clamped(norm);
        return grad[place] * norm * k[at];
      });
      for (int64_t place = 0; place < count * arguments_.neighbors; ++place)
        if (const int64_t key = arguments_.index[place]; key >= 0)
          key_factor_[key] -= grad[place] * arguments_.score[place] * squared_unless_clamped(k[keys_.number(key)]);
      return;
    }
    const bool l2 = problem_.similarity == Similarity::l2;
    links_.fill(arguments_.index, queries_, keys_, T(0), [&](int64_t place, int32_t, int64_t query) {
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
    const int64_t k = links_.neighbors;
    write(queries_, query_factor_, problem_.query, arguments_.grad_query,
          [&](const int64_t(&x)[kAxes], T* total) {
            Terms<T> terms;
            for_window_rows(x, problem_.patch, queries_.shape, [&](int64_t z, int64_t y, int64_t begin, int64_t end) {
              const int64_t first = (z * queries_.shape.size[1] + y) * queries_.shape.size[2];
              const int64_t row_shift = (x[0] - z) * keys_.stride[0] + (x[1] - y) * keys_.stride[1] + x[2];
              for (int64_t i = begin; i < end; ++i)
                for (int64_t n = 0; n < k; ++n) {
                  if (!terms.room_for(1)) add_weighted(keys, terms, total), terms.count = 0;
                  terms.add(int32_t(links_.at[(first + i) * k + n] + row_shift - i), links_.weight[(first + i) * k + n]);
                }
            });
            add_weighted(keys, terms, total);
          });
  }

  void to_key() {
    const PaddedMap<T> queries = map_of(problem_.query, problem_.query_shape);
    const Arrivals<T> arrivals(arguments_.index, links_, queries_, keys_);
    write(keys_, key_factor_, problem_.key, arguments_.grad_key, [&](const int64_t(&y)[kAxes], T* total) {
      Terms<T> terms;
      for_window_rows(y, problem_.patch, keys_.shape, [&](int64_t z, int64_t row, int64_t begin, int64_t end) {
        const int64_t first = (z * keys_.shape.size[1] + row) * keys_.shape.size[2];
        const int64_t row_shift = (y[0] - z) * queries_.stride[0] + (y[1] - row) * queries_.stride[1] + y[2];
        for (int64_t j = begin; j < end; ++j)
          for (int32_t a = arrivals.start[first + j]; a < arrivals.start[first + j + 1]; ++a) {
            if (!terms.room_for(1)) add_weighted(queries, terms, total), terms.count = 0;
            terms.add(int32_t(arrivals.from[a] + row_shift - j), arrivals.weight[a]);
          }
      });
      add_weighted(queries, terms, total);
    });
  }

  // Collects the gradient on the padded grid, folds it, and adds each pixel's own part, Σ β over its patches.
  template <typename Collect>
  void write(const Frame& frame, const Buffer<T>& factor, const View<const T>& own, T* out, const Collect& collect) {
    const int64_t channels = problem_.channels, width = frame.padded.size[2];
    PaddedMap<T> grad{frame, channels, Buffer<T>(frame.padded.count() * channels)};
    PaddedMap<T> own_factor{frame, 1, Buffer<T>(frame.padded.count())};
    for_ranges(frame.padded.rows(), 2, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row)
        for (int64_t x = 0; x < width; ++x) {
          const int64_t at[kAxes] = {row / frame.padded.size[1] - frame.border[0],
                                     row % frame.padded.size[1] - frame.border[1], x - frame.border[2]};
          T* total = grad.pixel(row * width + x);
          std::fill_n(total, channels, T(0));
          collect(at, total);
          T sum = 0;
          for_window_rows(at, problem_.patch, frame.shape, [&](int64_t z, int64_t y, int64_t first, int64_t last) {
            const T* line = factor.get() + (z * frame.shape.size[1] + y) * frame.shape.size[2];
            for (int64_t i = first; i < last; ++i) sum += line[i];
          });
          *own_factor.pixel(row * width + x) = sum;
        }
    });
    fold_border(grad, problem_.padding, out);
    grad.data.release();
    if (problem_.similarity == Similarity::dot) return;
    const int64_t count = frame.shape.count(), row_width = frame.shape.size[2];
    Buffer<T> folded(count);
    fold_border(own_factor, problem_.padding, folded.get());
    for_ranges(frame.shape.rows(), kRowsPerTask, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const T* source = own.data + row / frame.shape.size[1] * own.stride[0] + row % frame.shape.size[1] * own.stride[1];
        for (int64_t c = 0; c < channels; ++c)
          for (int64_t x = 0; x < row_width; ++x)
            out[c * count + row * row_width + x] +=
                folded[row * row_width + x] * source[c * own.channel_stride + x * own.stride[2]];
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
