// The cost of two patches, lower is better: the squared distance ("l2"), minus the dot product ("dot"), and minus
// the dot product over the key's norm ("cosine"; the query's norm is the same for all keys).

#if defined(PSAL_KERNELS_COMPARISON_INL_H_) == defined(PSAL_TARGET_TOGGLE)
#ifdef PSAL_KERNELS_COMPARISON_INL_H_
#undef PSAL_KERNELS_COMPARISON_INL_H_
#else
#define PSAL_KERNELS_COMPARISON_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include "../simd/lanes-inl.h"
#include "../simd/target.h"
#include "arguments.h"
#include "buffer-inl.h"
#include "padded_map-inl.h"
#include "parallel-inl.h"

PSAL_BEGIN_TARGET
namespace psal::PSAL_TARGET {

// A set of runs of numbers that lie behind each other in both maps: a patch, or one face of it.
struct Runs {
  int64_t count = 0;
  int64_t full = 0;         // whole lanes of a run
  int64_t tail = 0;         // numbers beyond them
  Buffer<int64_t> offsets;  // of run i in the query's map at 2 i, in the key's at 2 i + 1

  int64_t blocks() const { return count * (full + (tail > 0)); }
};

// The runs of a box of pixels, relative to its first.
template <typename T>
Runs box_runs(const int64_t (&size)[kAxes], int64_t channels, const Frame& query, const Frame& key) {
  Runs runs;
  runs.count = size[0] * size[1];
  runs.full = size[2] * channels / kWidth<T>;
  runs.tail = size[2] * channels % kWidth<T>;
  runs.offsets = Buffer<int64_t>(2 * runs.count);
  for (int64_t i = 0; i < runs.count; ++i) {
    const int64_t z = i / size[1], y = i % size[1];
    runs.offsets[2 * i] = (z * query.stride[0] + y * query.stride[1]) * channels;
    runs.offsets[2 * i + 1] = (z * key.stride[0] + y * key.stride[1]) * channels;
  }
  return runs;
}

template <Similarity S, typename T>
inline Lanes<T> add_pair(Lanes<T> total, Lanes<T> q, Lanes<T> k) {
  if constexpr (S == Similarity::l2) {
    const Lanes<T> d = q - k;
    return total + d * d;
  } else {
    return total - q * k;
  }
}

// `Full` is runs.full where that is known when compiling, 0 elsewhere.
template <Similarity S, bool Bounded, int Full, typename T>
inline T sum_runs_of(const T* query, const T* key, const Runs& runs, T limit) {
  constexpr int w = kWidth<T>;
  const int64_t full = Full ? Full : runs.full;
  const Bits<T> tail = first_lanes<T>(runs.tail);
  const int64_t* offset = runs.offsets.get();
  Lanes<T> total[4] = {};
  for (int64_t run = 0; run < runs.count; ++run, offset += 2) {
    const T* q = query + offset[0];
    const T* k = key + offset[1];
    if constexpr (Full > 0) {
      for (int i = 0; i < Full; ++i) total[i % 4] = add_pair<S, T>(total[i % 4], load(q + i * w), load(k + i * w));
    } else {
      for (int64_t i = 0; i < full; ++i) total[0] = add_pair<S, T>(total[0], load(q + i * w), load(k + i * w));
    }
    if (runs.tail)
      total[3] = add_pair<S, T>(total[3], masked<T>(load(q + full * w), tail), masked<T>(load(k + full * w), tail));
    if constexpr (Bounded && S == Similarity::l2) {
      if ((run & (run + 1)) == 0 &&  // after 1, 2, 4, … runs: most candidates fail at once
          sum<T>((total[0] + total[1]) + (total[2] + total[3])) >= limit)
        return std::numeric_limits<T>::infinity();
    }
    if constexpr (Full == 1) std::swap(total[0], total[1]);  // a shorter chain of additions
  }
  return sum<T>((total[0] + total[1]) + (total[2] + total[3]));
}

// Sum over all runs of (q − k)² or −q k. With `Bounded`, gives up with infinity once the sum reaches `limit`.
template <Similarity S, bool Bounded, typename T>
inline T sum_runs(const T* query, const T* key, const Runs& runs, T limit) {
  switch (runs.full) {  // the usual lengths: 16 channels and a patch of 7, 5 or 3, one column of it, 3 channels
    case 1: return sum_runs_of<S, Bounded, 1>(query, key, runs, limit);
    case 3: return sum_runs_of<S, Bounded, 3>(query, key, runs, limit);
    case 5: return sum_runs_of<S, Bounded, 5>(query, key, runs, limit);
    case 7: return sum_runs_of<S, Bounded, 7>(query, key, runs, limit);
    default: return sum_runs_of<S, Bounded, 0>(query, key, runs, limit);
  }
}

// The sum over one set of runs less the sum over another of the same form.
template <Similarity S, int Full, typename T>
inline T face_change_of(const T* query, const T* key, const T* old_query, const T* old_key, const Runs& runs) {
  constexpr int w = kWidth<T>;
  const int64_t full = Full ? Full : runs.full;
  const int64_t* offset = runs.offsets.get();
  Lanes<T> fresh[2] = {}, old[2] = {};
  for (int64_t run = 0; run < runs.count; ++run, offset += 2) {
    const T *q = query + offset[0], *k = key + offset[1], *p = old_query + offset[0], *o = old_key + offset[1];
    for (int64_t i = 0; i < full; ++i) {
      fresh[i % 2] = add_pair<S, T>(fresh[i % 2], load(q + i * w), load(k + i * w));
      old[i % 2] = add_pair<S, T>(old[i % 2], load(p + i * w), load(o + i * w));
    }
    if (runs.tail) {
      const Bits<T> tail = first_lanes<T>(runs.tail);
      const auto part = [&](const T* from) { return masked<T>(load(from + full * w), tail); };
      fresh[0] = add_pair<S, T>(fresh[0], part(q), part(k));
      old[0] = add_pair<S, T>(old[0], part(p), part(o));
    }
    if constexpr (Full == 1) std::swap(fresh[0], fresh[1]), std::swap(old[0], old[1]);
  }
  return sum<T>((fresh[0] - old[0]) + (fresh[1] - old[1]));
}

template <Similarity S, typename T>
inline T face_change(const T* query, const T* key, const T* old_query, const T* old_key, const Runs& runs) {
  switch (runs.full) {
    case 1: return face_change_of<S, 1>(query, key, old_query, old_key, runs);
    case 7: return face_change_of<S, 7>(query, key, old_query, old_key, runs);
    default: return face_change_of<S, 0>(query, key, old_query, old_key, runs);
  }
}

// Maps, patch and norms: everything that costs are computed from.
template <typename T>
struct Comparison {
  PaddedMap<T> query, key;
  Runs patch;
  int64_t query_corner = 0, key_corner = 0;  // of a patch, relative to its centre, in numbers
  Buffer<T> inverse_norm;                    // of the key's patches, by padded number; "cosine" only

  explicit Comparison(const Problem<T>& problem) : problem_(problem) { make_key(); }

  // The maps are made one after the other because the search needs the key's alone at first.
  void make_query() {
    query = make_map(problem_.query, problem_.query_shape);
    set_runs();
  }

  const T* query_patch(int64_t number) const { return query.data.get() + number * query.channels - query_corner; }
  const T* key_patch(int64_t number) const { return key.data.get() + number * key.channels - key_corner; }

  template <Similarity S>
  T cost(int64_t query_number, int64_t key_number) const {
    return weighted<S>(sum_runs<S, false>(query_patch(query_number), key_patch(key_number), patch, T(0)), key_number);
  }

  // Infinity where the cost is not below `limit`.
  template <Similarity S>
  T cost_below(T limit, int64_t query_number, int64_t key_number) const {
    return weighted<S>(sum_runs<S, true>(query_patch(query_number), key_patch(key_number), patch, limit), key_number);
  }

  // Fetches a key's patch.
  void prefetch(int64_t key_number) const {
    const T* at = key_patch(key_number);
    for (int64_t run = 0; run < patch.count; ++run)
      for (int64_t i = 0; i < patch.full + (patch.tail > 0); ++i)
        __builtin_prefetch(at + patch.offsets[2 * run + 1] + i * kWidth<T>);
  }

  template <Similarity S>
  T weighted(T raw, int64_t key_number) const {
    if constexpr (S == Similarity::cosine)
      return raw * inverse_norm[key_number];
    else
      return raw;
  }

  static int64_t corner(const PaddedMap<T>& map, const Patch& patch) {
    int64_t pixels = 0;
    for (int axis = 0; axis < kAxes; ++axis) pixels += patch.radius(axis) * map.frame.stride[axis];
    return pixels * map.channels;
  }

 private:
  PaddedMap<T> make_map(const View<const T>& view, const Shape& shape) const {
    // At least one pixel, so that a step out of the grid shows in the border.
    int64_t border[kAxes] = {0, 0, 0};
    for (int axis = kAxes - problem_.patch.dims; axis < kAxes; ++axis)
      border[axis] = std::max<int64_t>(1, problem_.patch.radius(axis));
    return padded_map(view, shape, problem_.channels, border, problem_.padding);
  }
  void make_key() {
    key = make_map(problem_.key, problem_.key_shape);
    key_corner = corner(key, problem_.patch);
    if (problem_.similarity == Similarity::cosine) inverse_norm = inverse_norms(key, problem_.patch);
  }
  void set_runs() {
    query_corner = corner(query, problem_.patch);
    patch = box_runs<T>(problem_.patch.size, problem_.channels, query.frame, key.frame);
  }

  const Problem<T>& problem_;
};

// One over the norm of each patch, by padded number.
template <typename T>
Buffer<T> inverse_norms(const PaddedMap<T>& map, const Patch& patch) {
  const Runs runs = box_runs<T>(patch.size, map.channels, map.frame, map.frame);
  const int64_t corner = Comparison<T>::corner(map, patch), width = map.frame.shape.size[2];
  Buffer<T> inverse(map.frame.padded.count(), T(1));
  for_ranges(map.frame.shape.rows(), kRowsPerTask, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t start = map.frame.row_start(row);
      for (int64_t number = start; number < start + width; ++number) {
        const T* at = map.data.get() + number * map.channels - corner;
        const T square = -sum_runs<Similarity::dot, false>(at, at, runs, T(0));
        inverse[number] = 1 / std::sqrt(std::max(square, T(kNormEpsilon * kNormEpsilon)));
      }
    }
  });
  return inverse;
}

}  // namespace psal::PSAL_TARGET
PSAL_END_TARGET

#endif  // per-target include guard
