// Lanes<T>, a vector of 64 bytes, and operations on it. GCC's and Clang's vector extensions map it to one or several
// registers of the target, so every target adds up in the same order.

#if defined(PSAL_SIMD_LANES_INL_H_) == defined(PSAL_TARGET_TOGGLE)
#ifdef PSAL_SIMD_LANES_INL_H_
#undef PSAL_SIMD_LANES_INL_H_
#else
#define PSAL_SIMD_LANES_INL_H_
#endif

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "target.h"

PSAL_BEGIN_TARGET
namespace psal::PSAL_TARGET {

template <typename T>
struct LanesOf {
  typedef T type __attribute__((vector_size(64)));
};
template <typename T>
using Lanes = typename LanesOf<T>::type;
template <typename T>
using Bits = typename LanesOf<std::conditional_t<sizeof(T) == 4, int32_t, int64_t>>::type;
template <typename T>
constexpr int kWidth = 64 / sizeof(T);  // lanes of a vector

template <typename T>
inline Lanes<T> load(const T* from) {
  Lanes<T> lanes;
  __builtin_memcpy(&lanes, from, sizeof lanes);
  return lanes;
}

template <typename T>
inline void store(T* to, Lanes<T> lanes) {
  __builtin_memcpy(to, &lanes, sizeof lanes);
}

template <typename T>
inline Lanes<T> broadcast(T x) {
  return x - Lanes<T>{};
}

// All bits set in the first `count` lanes.
template <typename T>
inline Bits<T> first_lanes(int64_t count) {
  Bits<T> bits;
  for (int lane = 0; lane < kWidth<T>; ++lane) bits[lane] = lane < count ? -1 : 0;
  return bits;
}

template <typename T>
inline Lanes<T> masked(Lanes<T> lanes, Bits<T> bits) {
  return (Lanes<T>)((Bits<T>)lanes & bits);
}

template <typename T>
inline Lanes<T> smaller(Lanes<T> a, Lanes<T> b) {
  return a < b ? a : b;
}

template <typename T>
inline Lanes<T> larger(Lanes<T> a, Lanes<T> b) {
  return a > b ? a : b;
}

// Combines all lanes into one as a tree: lane i with lane i + width / 2, until one is left.
template <typename Reduce>
inline float reduce(Lanes<float> v, Reduce combine) {
  typedef float V8 __attribute__((vector_size(32)));
  typedef float V4 __attribute__((vector_size(16)));
  const V8 a = combine(__builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7),
                       __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15));
  const V4 b = combine(__builtin_shufflevector(a, a, 0, 1, 2, 3), __builtin_shufflevector(a, a, 4, 5, 6, 7));
  const V4 c = combine(b, __builtin_shufflevector(b, b, 2, 3, 0, 1));
  return combine(c, __builtin_shufflevector(c, c, 1, 0, 3, 2))[0];
}

template <typename Reduce>
inline double reduce(Lanes<double> v, Reduce combine) {
  typedef double V4 __attribute__((vector_size(32)));
  typedef double V2 __attribute__((vector_size(16)));
  const V4 a = combine(__builtin_shufflevector(v, v, 0, 1, 2, 3), __builtin_shufflevector(v, v, 4, 5, 6, 7));
  const V2 b = combine(__builtin_shufflevector(a, a, 0, 1), __builtin_shufflevector(a, a, 2, 3));
  return combine(b, __builtin_shufflevector(b, b, 1, 0))[0];
}

template <typename T>
inline T sum(Lanes<T> v) {
  return reduce(v, [](auto a, auto b) { return a + b; });
}

template <typename T>
inline T largest(Lanes<T> v) {
  return reduce(v, [](auto a, auto b) { return a > b ? a : b; });
}

// Bit i is set where the sum of v[i] is below the limit. Four sums share their last two additions.
inline uint32_t sums_below(const Lanes<float> (&v)[4], float limit) {
  typedef float V8 __attribute__((vector_size(32)));
  typedef float V4 __attribute__((vector_size(16)));
  V4 quarter[4];
  for (int i = 0; i < 4; ++i) {
    const V8 half = __builtin_shufflevector(v[i], v[i], 0, 1, 2, 3, 4, 5, 6, 7) +
                    __builtin_shufflevector(v[i], v[i], 8, 9, 10, 11, 12, 13, 14, 15);
    quarter[i] = __builtin_shufflevector(half, half, 0, 1, 2, 3) + __builtin_shufflevector(half, half, 4, 5, 6, 7);
  }
  const auto fold = [](V4 a, V4 b) {
    return __builtin_shufflevector(a, b, 0, 1, 4, 5) + __builtin_shufflevector(a, b, 2, 3, 6, 7);
  };
  const V4 a = fold(quarter[0], quarter[1]), b = fold(quarter[2], quarter[3]);
  const auto below = __builtin_shufflevector(a, b, 0, 2, 4, 6) + __builtin_shufflevector(a, b, 1, 3, 5, 7) < limit;
  return (below[0] & 1) | (below[1] & 2) | (below[2] & 4) | (below[3] & 8);
}

// Bit i is set where lane i is below the limit.
inline uint32_t lanes_below(Lanes<float> v, float limit) {
  typedef int32_t I8 __attribute__((vector_size(32)));
  typedef int32_t I4 __attribute__((vector_size(16)));
  const Bits<float> powers = {1,      1 << 1, 1 << 2,  1 << 3,  1 << 4,  1 << 5,  1 << 6,  1 << 7,
                              1 << 8, 1 << 9, 1 << 10, 1 << 11, 1 << 12, 1 << 13, 1 << 14, 1 << 15};
  const Bits<float> set = (v < limit) & powers;
  const I8 a = __builtin_shufflevector(set, set, 0, 1, 2, 3, 4, 5, 6, 7) |
               __builtin_shufflevector(set, set, 8, 9, 10, 11, 12, 13, 14, 15);
  const I4 b = __builtin_shufflevector(a, a, 0, 1, 2, 3) | __builtin_shufflevector(a, a, 4, 5, 6, 7);
  const I4 c = b | __builtin_shufflevector(b, b, 2, 3, 0, 1);
  return uint32_t((c | __builtin_shufflevector(c, c, 1, 0, 3, 2))[0]);
}

// e^x for x ≤ 0 or NaN, accurate to about 1 ulp; exactly 0 where the result would be subnormal. x = n ln 2 + r with
// integer n and |r| ≤ ln 2 / 2; then e^x = 2ⁿ e^r, with a polynomial for e^r (the coefficients of Cephes' expf).
inline Lanes<float> exponential(Lanes<float> x) {
  const Bits<float> underflows = x < -87.0f;
  const Lanes<float> magic = broadcast(12582912.0f);  // 1.5 · 2²³: adding it rounds to an integer
  const Lanes<float> shifted = x * 1.44269504f + magic;
  const Lanes<float> n = shifted - magic;
  const Lanes<float> r = (x - n * 0.693359375f) + n * 2.12194440e-4f;  // ln 2 in two parts, for precision
  Lanes<float> p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
  const Bits<float> exponent = (Bits<float>)shifted << 23;  // n is in the low bits of `shifted`
  const Lanes<float> e = (Lanes<float>)((Bits<float>)p + exponent);
  return x == x ? masked<float>(e, ~underflows) : x;
}

inline Lanes<double> exponential(Lanes<double> x) {
  Lanes<double> e;
  for (int lane = 0; lane < kWidth<double>; ++lane) e[lane] = x[lane] < -708.0 ? 0.0 : std::exp(x[lane]);
  return e;
}

}  // namespace psal::PSAL_TARGET
PSAL_END_TARGET

#endif  // per-target include guard
