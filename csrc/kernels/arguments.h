// What the ops hand to the kernels. No torch in here.

#ifndef PSAL_KERNELS_ARGUMENTS_H_
#define PSAL_KERNELS_ARGUMENTS_H_

#include <cstdint>

namespace psal {

// The order is that of the words in src/psal/ops/native.py.
enum class Similarity { l2, dot, cosine };
enum class Init { random, tree, matches };
enum class Padding { replicate, reflect, zeros };

constexpr int kAxes = 3;               // signals and images are volumes whose first axes have size 1
constexpr double kNormEpsilon = 1e-8;  // as in src/psal/ops/reference.py

struct Shape {
  int64_t size[kAxes] = {1, 1, 1};
  int64_t count() const { return size[0] * size[1] * size[2]; }
  int64_t rows() const { return size[0] * size[1]; }
};

// One batch element of a (B, C, *S) tensor with any strides.
template <typename T>
struct View {
  T* data;
  int64_t channel_stride;
  int64_t stride[kAxes];
};

struct Patch {
  int64_t size[kAxes] = {1, 1, 1};
  int dims;  // how many of the axes are real: the last ones
  int64_t radius(int axis) const { return size[axis] / 2; }
  int64_t count() const { return size[0] * size[1] * size[2]; }
};

template <typename T>
struct Problem {  // one batch element
  View<const T> query, key;
  Shape query_shape, key_shape;
  int64_t channels;
  Patch patch;
  Similarity similarity;
  Padding padding;
};

template <typename T>
struct SearchArguments {
  Problem<T> problem;
  const bool* key_mask;       // [M], or null
  const bool* query_mask;     // [N], or null
  const int64_t* init_index;  // [init_count, N], or null
  int64_t init_count;
  uint64_t seed;
  uint64_t first_counter;  // of this batch element's random numbers
  int64_t neighbors, iterations;
  Init init;
  int64_t* index;  // [k, N]
  T* score;        // [k, N]
};

template <typename T>
struct ScoreArguments {
  Problem<T> problem;
  int64_t neighbors;
  const int64_t* index;  // [k, N]
  T* score;              // [k, N]
};

template <typename T>
struct ScoreGradientArguments {
  Problem<T> problem;
  int64_t neighbors;
  const int64_t* index;  // [k, N]
  const T* score;        // [k, N]
  const T* grad_score;   // [k, N]
  T* grad_query;         // [C, N]
  T* grad_key;           // [C, M]
};

template <typename T>
struct AttendArguments {  // without aggregation the patch is one pixel
  Shape query_shape, key_shape;
  Patch patch;
  int64_t channels, neighbors;
  T temperature;
  const int64_t* index;  // [k, N]
  const T* score;        // [k, N]
  View<const T> value;
  T* out;       // [Cv, N]
  T* log_mass;  // [2, N]: the largest logit, and the log of the mass relative to it
};

template <typename T>
struct AttendGradientArguments {
  AttendArguments<T> forward;
  View<const T> grad_out;
  T* grad_score;  // [k, N]
  T* grad_value;  // [Cv, M]
};

}  // namespace psal

#endif  // PSAL_KERNELS_ARGUMENTS_H_
