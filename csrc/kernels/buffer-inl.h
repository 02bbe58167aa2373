// Scratch memory of the kernels.

#if defined(PSAL_KERNELS_BUFFER_INL_H_) == defined(PSAL_TARGET_TOGGLE)
#ifdef PSAL_KERNELS_BUFFER_INL_H_
#undef PSAL_KERNELS_BUFFER_INL_H_
#else
#define PSAL_KERNELS_BUFFER_INL_H_
#endif

#ifdef __linux__
#include <sys/mman.h>
#endif

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>

#include "../simd/target.h"

PSAL_BEGIN_TARGET
namespace psal::PSAL_TARGET {

// Large arrays ask for pages of this size where they fill them: fewer page faults, and fewer misses of the TLB.
constexpr int64_t kHugePage = int64_t(1) << 21;

// An uninitialized array, aligned to cache lines. At least one whole vector may be read at or after its last element:
// the last 64 allocated bytes are padding and zero.
template <typename T>
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(int64_t size) : size_(size) {
    int64_t bytes;
    if (__builtin_mul_overflow(size, int64_t(sizeof(T)), &bytes) || __builtin_add_overflow(bytes, 127, &bytes))
      throw std::runtime_error("psal: not enough memory for " + std::to_string(size) + " values");
    bytes = bytes / 64 * 64;
    void* memory;  // not from aligned_alloc: that takes multiples of the alignment only
    if (posix_memalign(&memory, bytes < kHugePage ? 64 : kHugePage, bytes))
      throw std::runtime_error("psal: not enough memory for " + std::to_string(bytes) + " bytes");
    data_ = static_cast<T*>(memory);
#ifdef MADV_HUGEPAGE  // the system need not follow the advice, so its result does not matter
    if (bytes >= kHugePage) madvise(data_, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
#endif
    __builtin_memset(reinterpret_cast<char*>(data_) + bytes - 64, 0, 64);
  }
  Buffer(int64_t size, T fill) : Buffer(size) { std::fill_n(data_, size, fill); }
  Buffer(Buffer&& other) noexcept : data_(other.data_), size_(other.size_) { other.data_ = nullptr; }
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Buffer() { std::free(data_); }
  T* get() { return data_; }
  const T* get() const { return data_; }
  T& operator[](int64_t i) { return data_[i]; }
  const T& operator[](int64_t i) const { return data_[i]; }
  int64_t size() const { return size_; }
  void release() { Buffer released(std::move(*this)); }

 private:
  T* data_ = nullptr;
  int64_t size_ = 0;
};

}  // namespace psal::PSAL_TARGET
PSAL_END_TARGET

#endif  // per-target include guard
