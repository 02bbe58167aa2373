// A kd-tree over descriptors. Its leaves are stored so that 16 keys are compared at once.

constexpr int64_t kLeafSize = 64;

class Tree {
 public:
  // descriptors: [count][16]; numbers: what each stands for.
  Tree(const Buffer<float>& descriptors, const Buffer<int32_t>& numbers, int64_t count) : count_(count) {
    while ((count >> (depth_ + 1)) >= kLeafSize * 3 / 4) ++depth_;
    const int64_t leaves = int64_t(1) << depth_;
    axis_ = Buffer<int32_t>(leaves, 0);
    split_ = Buffer<float>(leaves, 0.0f);
    Buffer<int32_t> order(count);
    for (int64_t i = 0; i < count; ++i) order[i] = int32_t(i);
    sort(descriptors, order);
    fill_leaves(descriptors, numbers, order);
  }

  int64_t leaves() const { return int64_t(1) << depth_; }
  int64_t leaf_size(int64_t leaf) const { return start_[leaf + 1] - start_[leaf]; }

  // The leaf that a descriptor falls into; number d at q[d · stride].
  int64_t leaf_of(const float* q, int64_t stride) const {
    int64_t node = 1;
    for (int level = 0; level < depth_; ++level) node = 2 * node + (q[axis_[node] * stride] >= split_[node]);
    return node - leaves();
  }

  // Calls found(number, distance) for the keys of a leaf that are closer than limit(), which may fall meanwhile.
  template <typename Limit, typename Found>
  void scan(int64_t leaf, const Lanes<float> (&q)[kDescriptor], const Limit& limit, const Found& found) const {
    const int64_t size = leaf_size(leaf), first = block_start_[leaf];
    for (int64_t block = 0; block * kWidth<float> < size; ++block) {
      const float* keys = blocks_.get() + (first + block) * kDescriptor * kWidth<float>;
      Lanes<float> even{}, odd{};
      for (int d = 0; d < kDescriptor; d += 2) {
        even = add_pair<Similarity::l2, float>(even, q[d], load(keys + d * kWidth<float>));
        odd = add_pair<Similarity::l2, float>(odd, q[d + 1], load(keys + (d + 1) * kWidth<float>));
      }
      const Lanes<float> distance = smaller<float>(even + odd, broadcast(std::numeric_limits<float>::max()));
      if (!(smallest<float>(distance) < limit())) continue;
      const int32_t* numbers = numbers_.get() + (first + block) * kWidth<float>;
      const int64_t lanes = std::min<int64_t>(kWidth<float>, size - block * kWidth<float>);
      for (int64_t lane = 0; lane < lanes; ++lane)
        if (distance[lane] < limit()) found(numbers[lane], distance[lane]);
    }
  }

  // Calls body(number, leaf) for every key.
  template <typename Body>
  void for_each_key(const Body& body) const {
    for_ranges(leaves(), 64, [&](int64_t begin, int64_t end) {
      for (int64_t leaf = begin; leaf < end; ++leaf)
        for (int64_t i = 0; i < leaf_size(leaf); ++i)
          body(numbers_[block_start_[leaf] * kWidth<float> + i], leaf);
    });
  }

 private:
  // Splits every node at about its median along the axis in which it is widest, level by level.
  void sort(const Buffer<float>& descriptors, Buffer<int32_t>& order) {
    start_ = Buffer<int32_t>(leaves() + 1, 0);
    start_[leaves()] = int32_t(count_);
    for (int level = 0; level < depth_; ++level) {
      const int64_t nodes = int64_t(1) << level, span = leaves() >> level;
      for_each_task(nodes, [&](int64_t i) {
        start_[i * span + span / 2] = split(descriptors, order, nodes + i, start_[i * span], start_[(i + 1) * span]);
      });
    }
  }

  int32_t split(const Buffer<float>& descriptors, Buffer<int32_t>& order, int64_t node, int32_t begin, int32_t end) {
    constexpr int kSamples = 48;
    const int32_t size = end - begin;
    const auto value = [&](int32_t key, int64_t axis) { return descriptors[int64_t(key) * kDescriptor + axis]; };
    const int samples = int(std::min<int64_t>(size, kSamples));
    int32_t sample[kSamples];
    Lanes<float> total{}, squares{};
    for (int s = 0; s < samples; ++s) {
      sample[s] = order[begin + int64_t(s) * size / samples];
      const Lanes<float> x = load(descriptors.get() + int64_t(sample[s]) * kDescriptor);
      total += x;
      squares += x * x;
    }
    int axis = 0;
    float widest = -1;
    for (int d = 0; d < kDescriptor; ++d) {
      const float spread = squares[d] - total[d] * total[d] / float(std::max(samples, 1));
      if (spread > widest) widest = spread, axis = d;
    }
    float values[kSamples];
    for (int s = 0; s < samples; ++s) values[s] = value(sample[s], axis);
    std::sort(values, values + samples);
    float at = samples ? values[samples / 2] : 0;
    axis_[node] = axis;
    int32_t middle = partition(descriptors, order, begin, end, axis, at);
    if (!balanced(middle - begin, size)) {  // many equal values: put them on the other side
      at = samples ? *std::upper_bound(values, values + samples - 1, at) : 0;
      middle = partition(descriptors, order, begin, end, axis, at);
    }
    if (!balanced(middle - begin, size)) {  // hardly anything but equal values: it does not matter where they go
      middle = begin + size / 2;
      std::nth_element(order.get() + begin, order.get() + middle, order.get() + end, [&](int32_t a, int32_t b) {
        return value(a, axis) < value(b, axis) || (value(a, axis) == value(b, axis) && a < b);
      });
      if (size) at = value(order[middle], axis);
    }
    split_[node] = at;
    return middle;
  }

  static bool balanced(int64_t left, int64_t size) { return left * 4 >= size && left * 4 <= size * 3; }

  static int32_t partition(const Buffer<float>& descriptors, Buffer<int32_t>& order, int32_t begin, int32_t end,
                           int axis, float at) {
    const float* column = descriptors.get() + axis;
    int32_t* keys = order.get();
    return int32_t(std::partition(keys + begin, keys + end,
                                  [&](int32_t key) { return column[int64_t(key) * kDescriptor] < at; }) -
                   keys);
  }

  void fill_leaves(const Buffer<float>& descriptors, const Buffer<int32_t>& numbers, const Buffer<int32_t>& order) {
    constexpr int w = kWidth<float>;
    block_start_ = Buffer<int32_t>(leaves() + 1);
    block_start_[0] = 0;
    for (int64_t leaf = 0; leaf < leaves(); ++leaf)
      block_start_[leaf + 1] = block_start_[leaf] + int32_t((leaf_size(leaf) + w - 1) / w);
    const int64_t blocks = block_start_[leaves()];
    blocks_ = Buffer<float>(blocks * kDescriptor * w);
    numbers_ = Buffer<int32_t>(blocks * w);
    for_ranges(leaves(), 32, [&](int64_t begin, int64_t end) {
      for (int64_t leaf = begin; leaf < end; ++leaf) {
        const int64_t size = leaf_size(leaf), first = int64_t(block_start_[leaf]) * w;
        for (int64_t i = 0; i < (size + w - 1) / w * w; ++i) {
          float* block = blocks_.get() + (first + i) / w * w * kDescriptor + i % w;
          const int32_t key = i < size ? order[start_[leaf] + i] : -1;
          numbers_[first + i] = key < 0 ? -1 : numbers[key];
          for (int d = 0; d < kDescriptor; ++d)
            block[d * w] = key < 0 ? 1e18f : descriptors[int64_t(key) * kDescriptor + d];
        }
      }
    });
  }

  int64_t count_;
  int depth_ = 0;
  Buffer<int32_t> axis_, start_, block_start_, numbers_;
  Buffer<float> split_, blocks_;
};
