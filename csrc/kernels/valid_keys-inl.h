// The keys that may be matched: those in the grid that key_mask does not leave out.

#if defined(PSAL_KERNELS_VALID_KEYS_INL_H_) == defined(PSAL_TARGET_TOGGLE)
#ifdef PSAL_KERNELS_VALID_KEYS_INL_H_
#undef PSAL_KERNELS_VALID_KEYS_INL_H_
#else
#define PSAL_KERNELS_VALID_KEYS_INL_H_
#endif

#include <cstdint>

#include "../simd/target.h"
#include "buffer-inl.h"
#include "padded_grid-inl.h"

PSAL_BEGIN_TARGET
namespace psal::PSAL_TARGET {

struct ValidKeys {
  Buffer<uint8_t> is_valid;        // by padded index; 0 in the border
  Buffer<int32_t> padded_indices;  // of the valid keys, in order
  int64_t count = 0;

  ValidKeys(const PaddedGrid& grid, const bool* key_mask)
      : is_valid(grid.padded.count(), 0), padded_indices(grid.shape.count()) {
    const int64_t width = grid.shape.size[2];
    for (int64_t row = 0; row < grid.shape.rows(); ++row) {
      const int64_t start = grid.row_start(row);
      for (int64_t x = 0; x < width; ++x) {
        if (key_mask && !key_mask[row * width + x]) continue;
        is_valid[start + x] = 1;
        padded_indices[count++] = int32_t(start + x);
      }
    }
  }
};

}  // namespace psal::PSAL_TARGET
PSAL_END_TARGET

#endif  // per-target include guard
