// The kernels of one instruction set.

#ifndef PSAL_KERNELS_TABLE_H_
#define PSAL_KERNELS_TABLE_H_

#include "arguments.h"

namespace psal {

// Each kernel throws std::runtime_error with a message for the user.
template <typename T>
struct KernelsOf {
  void (*search)(const SearchArguments<T>&);
  void (*score)(const ScoreArguments<T>&);
  void (*score_gradient)(const ScoreGradientArguments<T>&);
  void (*attend)(const AttendArguments<T>&);
  void (*attend_gradient)(const AttendGradientArguments<T>&);
  void (*solve_poisson)(const PoissonArguments<T>&);
};

struct Kernels {
  KernelsOf<float> float32;
  KernelsOf<double> float64;
  template <typename T>
  const KernelsOf<T>& of() const {
    if constexpr (sizeof(T) == 4)
      return float32;
    else
      return float64;
  }
};

}  // namespace psal

#endif  // PSAL_KERNELS_TABLE_H_
