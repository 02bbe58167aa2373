// The paper's search: jump flooding and random search, all queries at once. The twin of search() in
// src/psal/ops/reference.py: same candidates, same order, same random numbers.

template <Similarity S, typename T>
class JumpFlooding {
 public:
  JumpFlooding(const Comparison<T>& comparison, const SearchArguments<T>& arguments, const Keys& keys,
               NeighborField<T>& field)
      : comparison_(comparison), arguments_(arguments), keys_(keys), field_(field),
        dims_(arguments.problem.patch.dims) {
    const int64_t queries = arguments.problem.query_shape.count();
    for (auto& leaders : before_) leaders = Buffer<int32_t>(queries);
    now_ = Buffer<int32_t>(queries);
    int64_t longest = 1;
    for (int axis = kAxes - dims_; axis < kAxes; ++axis)
      longest = std::max(longest, arguments.problem.key_shape.size[axis]);
    for (int64_t radius = longest; radius >= 1; radius /= 2) radius_[draws_++] = radius;
  }

  void run() {
    for (int64_t iteration = 0; iteration < arguments_.iterations; ++iteration)
      for (int step = 0; step < kJumps; ++step) {
        pass(iteration, step);
        std::swap(before_[step], now_);
      }
  }

 private:
  static constexpr int kJumps = 4;  // 1, 2, 4, 8

  void pass(int64_t iteration, int step) {
    const Shape& shape = arguments_.problem.query_shape;
    for_ranges(shape.count(), 4096, [&](int64_t begin, int64_t end) {
      for (int64_t query = begin; query < end; ++query) now_[query] = field_.at[query * field_.neighbors];
    });
    const int64_t first_stream = arguments_.neighbors + 1 + iteration * draws_ * dims_;
    Buffer<Stream> streams(draws_ * dims_);
    for (int64_t i = 0; i < draws_ * dims_; ++i) streams[i] = Stream(arguments_.seed, first_stream + i);
    for_ranges(shape.rows(), 2, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row)
        for (int64_t x = 0; x < shape.size[2]; ++x) {
          const int64_t query = row * shape.size[2] + x;
          if (now_[query] < 0) continue;
          const int64_t at[kAxes] = {row / shape.size[1], row % shape.size[1], x};
          const int64_t number = comparison_.query.frame.row_start(row) + x;
          Neighbors<T> own = field_[query];
          propagate(query, number, at, own, iteration, step);
          if (step == kJumps - 1) search_at_random(query, number, own, streams.get());
        }
    });
  }

  void propagate(int64_t query, int64_t number, const int64_t (&at)[kAxes], Neighbors<T>& own, int64_t iteration,
                 int step) {
    const Shape& shape = arguments_.problem.query_shape;
    const Frame& key_frame = comparison_.key.frame;
    for (int axis = kAxes - dims_; axis < kAxes; ++axis) {
      const int64_t stride = axis == 2 ? 1 : axis == 1 ? shape.size[2] : shape.size[2] * shape.size[1];
      for (int64_t offset : {-(int64_t(1) << step), int64_t(1) << step}) {
        if (at[axis] + offset < 0 || at[axis] + offset >= shape.size[axis]) continue;
        const int64_t source = query + offset * stride;
        const int32_t leader = now_[source];
        if (leader < 0) continue;
        // An unchanged leader was offered in the last iteration, and what was too bad then is too bad now.
        if (iteration > 0 && before_[step][source] == leader) continue;
        const int64_t target = key_frame.position(leader).at[axis] - offset;
        if (target < 0 || target >= key_frame.shape.size[axis]) continue;
        offer(number, int32_t(leader - offset * key_frame.stride[axis]), own);
      }
    }
  }

  void search_at_random(int64_t query, int64_t number, Neighbors<T>& own, const Stream* streams) {
    const uint64_t counter = arguments_.first_counter + query;
    Frame::Position centre = comparison_.key.frame.position(own.at[0]);
    int32_t next = target(centre, counter, radius_[0], streams);
    for (int draw = 0; draw < draws_; ++draw) {
      const int32_t key = next, best = own.at[0];
      const auto draw_next = [&] { return target(centre, counter, radius_[draw + 1], streams + (draw + 1) * dims_); };
      if (draw + 1 < draws_) comparison_.prefetch(next = draw_next());  // the best will hardly change
      offer(number, key, own);
      if (own.at[0] == best) continue;
      centre = comparison_.key.frame.position(own.at[0]);
      if (draw + 1 < draws_) next = draw_next();
    }
  }

  // A random key in the window around another.
  int32_t target(const Frame::Position& centre, uint64_t counter, int64_t radius, const Stream* streams) const {
    const Frame& frame = comparison_.key.frame;
    int64_t key = frame.origin;
    for (int axis = kAxes - dims_; axis < kAxes; ++axis, ++streams) {
      const int64_t low = std::max<int64_t>(0, centre.at[axis] - radius);
      const int64_t high = std::min(frame.shape.size[axis] - 1, centre.at[axis] + radius);
      key += (low + streams->below(counter, high - low + 1)) * frame.stride[axis];
    }
    return int32_t(key);
  }

  void offer(int64_t number, int32_t key, Neighbors<T>& own) {
    if (!keys_.open[key] || own.has(key)) return;
    const T cost = comparison_.template cost_below<S>(own.worst(), number, key);
    if (cost < own.worst()) own.insert(key, cost);
  }

  const Comparison<T>& comparison_;
  const SearchArguments<T>& arguments_;
  const Keys& keys_;
  NeighborField<T>& field_;
  const int dims_;
  int draws_ = 0;
  int64_t radius_[64];
  Buffer<int32_t> before_[kJumps], now_;  // each query's best, at the same jump of the last iteration, and now
};
