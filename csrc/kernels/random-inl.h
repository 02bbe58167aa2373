// Counter-based random numbers: the twin of src/psal/ops/random.py. A number depends only on the seed, the stream and
// the counter, so threads and backends draw the same ones.

#if defined(PSAL_KERNELS_RANDOM_INL_H_) == defined(PSAL_TARGET_TOGGLE)
#ifdef PSAL_KERNELS_RANDOM_INL_H_
#undef PSAL_KERNELS_RANDOM_INL_H_
#else
#define PSAL_KERNELS_RANDOM_INL_H_
#endif

#include <cstdint>

#include "../simd/target.h"

PSAL_BEGIN_TARGET
namespace psal::PSAL_TARGET {

// A bijection of 32-bit integers with good avalanche: lowbias32 of Wellons' hash prospector.
inline uint32_t mix(uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  return x ^ (x >> 16);
}

class Stream {
 public:
  Stream(uint64_t seed, uint64_t stream)
      : first_(mix(mix(mix(uint32_t(seed)) + uint32_t(seed >> 32)) + uint32_t(stream))),
        second_(mix(first_ + 0x9e3779b9u)) {}

  // A uniform integer in [0, bound).
  int64_t below(uint64_t counter, uint64_t bound) const {
    const uint64_t bits = mix(mix(uint32_t(counter) + first_) + second_);
    return int64_t((bits * bound) >> 32);
  }

 private:
  uint32_t first_, second_;
};

}  // namespace psal::PSAL_TARGET
PSAL_END_TARGET

#endif  // per-target include guard
