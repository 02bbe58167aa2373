// What the ops pass to the kernels: plain structs, no torch.

#ifndef PSAL_KERNELS_ARGUMENTS_H_
#define PSAL_KERNELS_ARGUMENTS_H_

#include <cstdint>

namespace psal {

// In the order of the words in src/psal/options.py and of INIT_KINDS in src/psal/ops/native.py.
enum class Similarity { l2, dot, cosine };
enum class Init { random, tree, matches };
enum class Padding { replicate, reflect, zeros };

constexpr int kAxes = 3;               // z, y, x: signals and images are volumes whose first axes have size 1
constexpr double kNormEpsilon = 1e-8;  // as in src/psal/ops/reference.py

struct Shape {
  int64_t size[kAxes] = {1, 1, 1};
  int64_t count() const { return size[0] * size[1] * size[2]; }
  int64_t rows() const { return size[0] * size[1]; }
};

struct Coordinates {
  int64_t value[kAxes] = {0, 0, 0};
  int64_t operator[](int axis) const { return value[axis]; }
  int64_t& operator[](int axis) { return value[axis]; }
};

using Border = Coordinates;  // pixels on either side of each axis

// One batch element of a (B, C, *S) tensor with any strides.
template <typename T>
struct View {
  T* data;
  int64_t channel_stride;
  int64_t stride[kAxes];
};

struct Patch {
  int64_t size[kAxes] = {1, 1, 1};
  int dims;  // the user's number of spatial dimensions: that many last axes
  int64_t radius(int axis) const { return size[axis] / 2; }
  int64_t count() const { return size[0] * size[1] * size[2]; }
};

// The arguments below are of one batch element. N queries, M keys, k neighbors, C channels, Cv channels of the value.

template <typename T>
struct Problem {
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
  uint64_t first_counter;  // of the random numbers: query i of this batch element uses first_counter + i
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
struct AttendArguments {
  Shape query_shape, key_shape;
  Patch patch;  // one pixel without aggregation
  int64_t channels, neighbors;
  T inverse_temperature;  // positive and finite
  const int64_t* index;   // [k, N]
  const T* score;         // [k, N]
  View<const T> value;    // [Cv, M]
  T* out;                 // [Cv, N]
  T* log_mass;            // [2, N]: a score m, no smaller than any used, and log Σ e^((score − m) / temperature)
};

template <typename T>
struct AttendGradientArguments {
  AttendArguments<T> forward;
  View<const T> grad_out;  // [Cv, N]
  T* grad_score;           // [k, N]
  T* grad_value;           // [Cv, M]
};

// Δx − screening · x = right_side at the unknown pixels. The others of the domain are 0, and no flux leaves the domain.
template <typename T>
struct PoissonArguments {
  int64_t height, width, channels;
  const T* right_side;  // [C, height, width]
  const bool* unknown;  // [height, width]; pixels of the domain
  const bool* domain;   // [height, width]
  T screening;          // at least 0
  T tolerance;          // largest estimated error of a pixel
  T* out;               // [C, height, width], zeros
};

}  // namespace psal

#endif  // PSAL_KERNELS_ARGUMENTS_H_
