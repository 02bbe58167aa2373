// Sums over the values of two patches: Σ (q − k)² for "l2", −Σ q k for "dot" and "cosine".

#if defined(PSAL_KERNELS_PATCH_SUM_INL_H_) == defined(PSAL_TARGET_TOGGLE)
#ifdef PSAL_KERNELS_PATCH_SUM_INL_H_
#undef PSAL_KERNELS_PATCH_SUM_INL_H_
#else
#define PSAL_KERNELS_PATCH_SUM_INL_H_
#endif

#include <cstdint>
#include <limits>
#include <utility>

#include "../simd/lanes-inl.h"
#include "../simd/target.h"
#include "arguments.h"
#include "buffer-inl.h"
#include "padded_grid-inl.h"
#include "tuning.h"

PSAL_BEGIN_TARGET
namespace psal::PSAL_TARGET {

// The contiguous runs of values that make up a box of pixels, the same in two maps: a patch, or one face of it.
struct Runs {
  int64_t count = 0;
  int64_t vectors = 0;  // whole vectors per run
  int64_t tail = 0;     // values of a run after them
  Buffer<int64_t>
      offsets;  // of run i, relative to the box's first value: in the query's map at 2 i, the key's at 2 i + 1

  int64_t total_vectors() const { return count * (vectors + (tail > 0)); }
};

template <typename T>
Runs box_runs(const int64_t (&size)[kAxes], int64_t channels, const PaddedGrid& query, const PaddedGrid& key) {
  Runs runs;
  runs.count = size[0] * size[1];
  runs.vectors = size[2] * channels / kWidth<T>;
  runs.tail = size[2] * channels % kWidth<T>;
  runs.offsets = Buffer<int64_t>(2 * runs.count);
  for (int64_t i = 0; i < runs.count; ++i) {
    const int64_t z = i / size[1], y = i % size[1];
    runs.offsets[2 * i] = (z * query.stride[0] + y * query.stride[1]) * channels;
    runs.offsets[2 * i + 1] = (z * key.stride[0] + y * key.stride[1]) * channels;
  }
  return runs;
}

enum class Tail { none, half, whole };  // how much of a vector the tail of a run takes, at most

// How runs are loaded. `Vectors` is runs.vectors where that is known at compile time, otherwise 0. Runs without a tail
// are aligned to cache lines: a pixel fills whole ones.
template <int Vectors, Tail Part>
struct RunLoads {
  static constexpr int kVectors = Vectors;
  static constexpr bool kHasTail = Part != Tail::none;

  template <typename T>
  static Lanes<T> whole(const T* from) {
    return kHasTail ? load_across(from) : load(from);
  }
  template <typename T>
  static Lanes<T> tail(const T* from, const Bits<T>& lanes) {
    return masked<T>(Part == Tail::half ? load_half(from) : load_across(from), lanes);
  }
};

// Calls body() with the RunLoads of these runs.
template <Tail Part, typename Body>
inline auto with_vectors(const Runs& runs, const Body& body) {
  switch (runs.vectors) {  // float32: patches of 3, 5, 7 with 16 channels; 1: a column of those
    case 1: return body(RunLoads<1, Part>());
    case 3: return body(RunLoads<3, Part>());
    case 5: return body(RunLoads<5, Part>());
    case 7: return body(RunLoads<7, Part>());
    default: return body(RunLoads<0, Part>());
  }
}

template <typename T, typename Body>
inline auto with_loads(const Runs& runs, const Body& body) {
  if (!runs.tail) return with_vectors<Tail::none>(runs, body);
  const bool is_half = runs.tail <= kWidth<T> / 2;
  if (is_half && runs.vectors == 1) return body(RunLoads<1, Tail::half>());  // patches of 7 with 3 channels
  if (is_half && runs.vectors == 0) return body(RunLoads<0, Tail::half>());  // a column of those
  return with_vectors<Tail::whole>(runs, body);
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

// There are four accumulators because each addition has to wait for the one before it into the same accumulator;
// additions into different ones overlap.
template <Similarity S, bool Bounded, typename Loads, typename T>
inline T sum_runs_of(const T* query, const T* key, const Runs& runs, T limit) {
  constexpr int w = kWidth<T>;
  constexpr int Vectors = Loads::kVectors;
  const int64_t vectors = Vectors ? Vectors : runs.vectors;
  const Bits<T> tail = first_lanes<T>(runs.tail);
  const int64_t* offset = runs.offsets.get();
  const bool may_stop = Bounded && runs.total_vectors() >= kBoundedMinVectors;
  Lanes<T> total[4] = {};
  for (int64_t run = 0; run < runs.count; ++run, offset += 2) {
    const T* q = query + offset[0];
    const T* k = key + offset[1];
    if constexpr (Vectors > 0) {
      for (int i = 0; i < Vectors; ++i)
        total[i % 4] = add_pair<S, T>(total[i % 4], Loads::whole(q + i * w), Loads::whole(k + i * w));
    } else {
      for (int64_t i = 0; i < vectors; ++i)
        total[0] = add_pair<S, T>(total[0], Loads::whole(q + i * w), Loads::whole(k + i * w));
    }
    if constexpr (Loads::kHasTail)
      total[3] = add_pair<S, T>(total[3], Loads::tail(q + vectors * w, tail), Loads::tail(k + vectors * w, tail));
    if constexpr (Bounded && S == Similarity::l2) {
      if (may_stop &&
          (run & (run + 1)) == 0 &&  // after 1, 2, 4, … runs: most candidates are ruled out by the first one
          sum<T>((total[0] + total[1]) + (total[2] + total[3])) >= limit)
        return std::numeric_limits<T>::infinity();
    }
  }
  return sum<T>((total[0] + total[1]) + (total[2] + total[3]));
}

// The sum over all runs. If `Bounded`, it may return infinity as soon as the sum reaches `limit`.
template <Similarity S, bool Bounded, typename T>
inline T sum_runs(const T* query, const T* key, const Runs& runs, T limit) {
  return with_loads<T>(runs,
                       [&](auto loads) { return sum_runs_of<S, Bounded, decltype(loads)>(query, key, runs, limit); });
}

// Several keys that are compared with one query share the loads of the query's values. Where a register is small there
// are too few of them for that.
constexpr int kKeyGroup = kRegisters == 1 ? 3 : 1;

// The sums over all runs for a group of keys, the same as sum_runs() up to the last bit.
template <Similarity S, typename Loads, int Keys, typename T>
inline void sum_group_of(const T* query, const T* const (&key)[Keys], const Runs& runs, T (&sums)[Keys]) {
  constexpr int w = kWidth<T>;
  constexpr int Vectors = Loads::kVectors;
  const int64_t vectors = Vectors ? Vectors : runs.vectors;
  const Bits<T> tail = first_lanes<T>(runs.tail);
  const int64_t* offset = runs.offsets.get();
  Lanes<T> total[Keys][4];
  unrolled<Keys>([&](auto g) { unrolled<4>([&](auto a) { total[g][a] = Lanes<T>{}; }); });
  for (int64_t run = 0; run < runs.count; ++run, offset += 2) {
    const T* q = query + offset[0];
    const auto add = [&](auto accumulator, int64_t i) {
      const Lanes<T> x = Loads::whole(q + i * w);
      unrolled<Keys>([&](auto g) {
        Lanes<T>& t = total[g][accumulator];
        t = add_pair<S, T>(t, x, Loads::whole(key[g] + offset[1] + i * w));
      });
    };
    if constexpr (Vectors > 0)
      unrolled<Vectors>([&](auto i) { add(std::integral_constant<int, i % 4>(), i); });
    else
      for (int64_t i = 0; i < vectors; ++i) add(std::integral_constant<int, 0>(), i);
    if constexpr (Loads::kHasTail) {
      const Lanes<T> x = Loads::tail(q + vectors * w, tail);
      unrolled<Keys>([&](auto g) {
        total[g][3] = add_pair<S, T>(total[g][3], x, Loads::tail(key[g] + offset[1] + vectors * w, tail));
      });
    }
  }
  unrolled<Keys>([&](auto g) { sums[g] = sum<T>((total[g][0] + total[g][1]) + (total[g][2] + total[g][3])); });
}

template <Similarity S, int Keys, typename T>
inline void sum_group(const T* query, const T* const (&key)[Keys], const Runs& runs, T (&sums)[Keys]) {
  with_loads<T>(runs, [&](auto loads) { sum_group_of<S, decltype(loads)>(query, key, runs, sums); });
}

// Values from the first one of a patch to those of the two faces across an axis that change when it moves.
struct FaceOffsets {
  int64_t entering[2], leaving[2];  // in the query's map, the key's
};

template <Similarity S, typename Loads, int Keys, typename T>
inline void face_changes_of(const T* query, const T* const (&key)[Keys], const Runs& runs, const FaceOffsets& face,
                            T (&changes)[Keys]) {
  constexpr int w = kWidth<T>;
  constexpr int Vectors = Loads::kVectors;
  const int64_t vectors = Vectors ? Vectors : runs.vectors;
  const Bits<T> tail = first_lanes<T>(runs.tail);
  const int64_t* offset = runs.offsets.get();
  Lanes<T> entering[Keys], leaving[Keys];
  unrolled<Keys>([&](auto g) { entering[g] = leaving[g] = Lanes<T>{}; });
  for (int64_t run = 0; run < runs.count; ++run, offset += 2) {
    const T *q = query + offset[0] + face.entering[0], *p = query + offset[0] + face.leaving[0];
    const int64_t k = offset[1] + face.entering[1], o = offset[1] + face.leaving[1];
    for (int64_t i = 0; i < vectors; ++i) {
      const Lanes<T> x = Loads::whole(q + i * w), y = Loads::whole(p + i * w);
      unrolled<Keys>([&](auto g) {
        entering[g] = add_pair<S, T>(entering[g], x, Loads::whole(key[g] + k + i * w));
        leaving[g] = add_pair<S, T>(leaving[g], y, Loads::whole(key[g] + o + i * w));
      });
    }
    if constexpr (Loads::kHasTail) {
      const auto part = [&](const T* from) { return Loads::tail(from + vectors * w, tail); };
      const Lanes<T> x = part(q), y = part(p);
      unrolled<Keys>([&](auto g) {
        entering[g] = add_pair<S, T>(entering[g], x, part(key[g] + k));
        leaving[g] = add_pair<S, T>(leaving[g], y, part(key[g] + o));
      });
    }
  }
  unrolled<Keys>([&](auto g) { changes[g] = sum<T>(entering[g] - leaving[g]); });
}

// The sum over the entering face minus that over the leaving one, for a group of keys: what a patch's sum changes by
// when both patches move by one pixel.
template <Similarity S, int Keys, typename T>
inline void face_changes(const T* query, const T* const (&key)[Keys], const Runs& runs, const FaceOffsets& face,
                         T (&changes)[Keys]) {
  with_loads<T>(runs, [&](auto loads) { face_changes_of<S, decltype(loads)>(query, key, runs, face, changes); });
}

}  // namespace psal::PSAL_TARGET
PSAL_END_TARGET

#endif  // per-target include guard
