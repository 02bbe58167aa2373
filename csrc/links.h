// Matches as weighted links between a query's pixel and a key's, and sums over them. Attention, aggregation and all
// gradients are such sums: over the links of the pixels around a query (forward ones), or over those that arrive
// around a key (backward ones).

inline int64_t checked(int64_t index, int64_t keys) {
  if (index >= keys)
    throw std::runtime_error("psal: matches.index must be below the number of keys, " + std::to_string(keys) +
                             ", got " + std::to_string(index));
  return index;
}

// Link n of query i at place i · k + n: where it leads, as a padded number, and its weight.
template <typename T>
struct Links {
  Buffer<int32_t> at;
  Buffer<T> weight;
  int64_t neighbors;

  Links(int64_t queries, int64_t neighbors_) : at(queries * neighbors_), weight(queries * neighbors_), neighbors(neighbors_) {}

  // weight_of(place, n, i) is called for every link there is; others get `absent`.
  template <typename Weight>
  void fill(const int64_t* index, const Frame& queries, const Frame& keys, T absent, const Weight& weight_of) {
    const int64_t count = queries.shape.count(), all = keys.shape.count();
    for_ranges(count, 2048, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        for (int64_t n = 0; n < neighbors; ++n) {
          const int64_t key = checked(index[n * count + i], all), place = i * neighbors + n;
          at[place] = int32_t(key < 0 ? keys.origin : keys.number(key));
          weight[place] = key < 0 ? absent : weight_of(n * count + i, at[place], i);
        }
    });
  }
};

// The links that arrive at each key, ordered by query.
template <typename T>
struct Arrivals {
  Buffer<int32_t> start;  // of key j's links, by its flat number
  Buffer<int32_t> from;   // padded number of the query
  Buffer<T> weight;

  Arrivals(const int64_t* index, const Links<T>& links, const Frame& queries, const Frame& keys)
      : start(keys.shape.count() + 2, 0), from(links.at.size()), weight(links.at.size()) {
    const int64_t count = queries.shape.count(), k = links.neighbors;
    // Counted two places on, summed, and filled one place on: then each start has moved to where it belongs.
    for (int64_t place = 0; place < count * k; ++place)
      if (index[place] >= 0) ++start[index[place] + 2];
    for (int64_t j = 2; j < start.size(); ++j) start[j] += start[j - 1];
    for (int64_t i = 0; i < count; ++i) {
      const int32_t number = int32_t(queries.number(i));
      for (int64_t n = 0; n < k; ++n) {
        const int64_t key = index[n * count + i];
        if (key < 0) continue;
        const int32_t to = start[key + 1]++;
        from[to] = number;
        weight[to] = links.weight[i * k + n];
      }
    }
  }
};

// The pixels of a window around `centre` that lie in the grid, row by row: body(z, y, first x, end x).
template <typename Body>
inline void for_window_rows(const int64_t (&centre)[kAxes], const Patch& patch, const Shape& grid, const Body& body) {
  int64_t low[kAxes], high[kAxes];
  for (int axis = 0; axis < kAxes; ++axis) {
    low[axis] = std::max<int64_t>(0, centre[axis] - patch.radius(axis));
    high[axis] = std::min(grid.size[axis] - 1, centre[axis] + patch.radius(axis));
  }
  for (int64_t z = low[0]; z <= high[0]; ++z)
    for (int64_t y = low[1]; y <= high[1]; ++y)
      if (low[2] <= high[2]) body(z, y, low[2], high[2] + 1);
}

// Terms of a sum, collected so that they can be worked on many at once.
template <typename T>
struct Terms {
  static constexpr int64_t kCapacity = 1024;
  int32_t at[kCapacity + kWidth<T>];
  alignas(64) T weight[kCapacity + kWidth<T>];
  int64_t count = 0;

  bool room_for(int64_t more) const { return count + more <= kCapacity; }
  void add(int32_t where, T its_weight) {
    at[count] = where;
    weight[count++] = its_weight;
  }
};

// total[c] += Σ weight · map[at][c]
template <typename T>
inline void add_weighted(const PaddedMap<T>& map, const Terms<T>& terms, T* total) {
  constexpr int w = kWidth<T>;
  for (int64_t channel = 0; channel < map.channels; channel += w) {
    const T* base = map.data.get() + channel;
    Lanes<T> a{}, b{}, c{}, d{};
    int64_t i = 0;
    for (; i + 4 <= terms.count; i += 4) {
      a += terms.weight[i] * load(base + terms.at[i] * map.channels);
      b += terms.weight[i + 1] * load(base + terms.at[i + 1] * map.channels);
      c += terms.weight[i + 2] * load(base + terms.at[i + 2] * map.channels);
      d += terms.weight[i + 3] * load(base + terms.at[i + 3] * map.channels);
    }
    for (; i < terms.count; ++i) a += terms.weight[i] * load(base + terms.at[i] * map.channels);
    const Lanes<T> all = (a + b) + (c + d);
    const int64_t lanes = std::min<int64_t>(w, map.channels - channel);
    if (lanes == w) store(total + channel, load(total + channel) + all);
    else for (int64_t lane = 0; lane < lanes; ++lane) total[channel + lane] += all[lane];
  }
}
