// A patch in 16 numbers, so that a tree can sort patches. A few principal channels are expanded in the lowest
// frequencies of a cosine transform over the patch, and the 16 principal components of that are kept. All steps are
// projections on orthonormal vectors: distances of descriptors are close to, and never above, those of patches.

#if defined(PSAL_KERNELS_DESCRIPTOR_INL_H_) == defined(PSAL_TARGET_TOGGLE)
#ifdef PSAL_KERNELS_DESCRIPTOR_INL_H_
#undef PSAL_KERNELS_DESCRIPTOR_INL_H_
#else
#define PSAL_KERNELS_DESCRIPTOR_INL_H_
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "../simd/lanes-inl.h"
#include "../simd/target.h"
#include "arguments.h"
#include "buffer-inl.h"
#include "padded_map-inl.h"
#include "random-inl.h"

PSAL_BEGIN_TARGET
namespace psal::PSAL_TARGET {

constexpr int kDescriptor = 16;

inline double square_of(const double* x, int64_t size) {
  double square = 0;
  for (int64_t i = 0; i < size; ++i) square += x[i] * x[i];
  return square;
}

// The `count` leading eigenvectors of a symmetric matrix, as rows, by orthogonal iteration.
inline Buffer<float> principal_directions(const Buffer<double>& matrix, int64_t size, int64_t count) {
  constexpr int kIterations = 12;
  Buffer<double> rows(count * size), product(size);
  for (int64_t i = 0; i < count * size; ++i) rows[i] = double(mix(uint32_t(i))) / 4294967296.0 - 0.5;
  for (int iteration = 0; iteration <= kIterations; ++iteration) {
    for (int64_t r = 0; r < count; ++r) {
      double* row = rows.get() + r * size;
      if (iteration > 0) {
        std::fill_n(product.get(), size, 0.0);
        for (int64_t i = 0; i < size; ++i)
          for (int64_t j = 0; j < size; ++j) product[j] += row[i] * matrix[i * size + j];
        std::copy_n(product.get(), size, row);
      }
    }
    for (int64_t r = 0; r < count; ++r) {
      double* row = rows.get() + r * size;
      const double before = square_of(row, size);
      for (int64_t s = 0; s < r; ++s) {
        const double* other = rows.get() + s * size;
        double along = 0;
        for (int64_t i = 0; i < size; ++i) along += row[i] * other[i];
        for (int64_t i = 0; i < size; ++i) row[i] -= along * other[i];
      }
      const double square = square_of(row, size);  // what is left may be rounding errors: then there is nothing more
      const double scale = square > 1e-18 * before && square < 1e300 ? 1 / std::sqrt(square) : 0;
      for (int64_t i = 0; i < size; ++i) row[i] *= scale;
    }
  }
  Buffer<float> directions(count * size);
  for (int64_t i = 0; i < count * size; ++i) directions[i] = float(rows[i]);
  return directions;
}

// Length of a line of numbers in memory: whole lanes.
inline int64_t pitch(int64_t width) { return (width + kWidth<float> - 1) / kWidth<float> * kWidth<float>; }

template <typename T>
class Descriptors {
 public:
  // Learns channels and components from the key's map. For "dot", the last number makes up for the patch's norm, so
  // that the largest product becomes the smallest distance.
  Descriptors(const PaddedMap<T>& key, const Patch& patch, Similarity similarity, const Buffer<T>& inverse_norm)
      : patch_(patch), similarity_(similarity) {
    choose_frequencies(key.channels);
    find_channels(key);
    find_components(key, inverse_norm);
    if (similarity == Similarity::dot) {
      for_each_pixel(key, [&](int64_t number) {
        const T norm = 1 / inverse_norm[number];
        if (std::isfinite(norm)) largest_norm_ = std::max(largest_norm_, float(norm));
      });
    }
  }

  // How many products at most stand behind one number, beyond the projection of channels.
  int64_t terms() const { return patch_.size[0] * patch_.size[1] + patch_.size[2] + raw_; }

  // Scratch memory of one thread, and the filtered rows that the next row needs again.
  struct Scratch {
    Buffer<int64_t> tag;
    Buffer<float*> slot;
    Buffer<float> filtered, projected, raw;
  };

  // Descriptors of pixels [begin, end) of a row, number d of pixel x at out[d · pitch(end − begin) + x − begin].
  void row(const PaddedMap<T>& map, const Buffer<T>& inverse_norm, bool is_key, int64_t row, int64_t begin, int64_t end,
           Scratch& scratch, float* out) const {
    const int64_t line = pitch(end - begin);
    raw_row(map, row, begin, end, scratch);
    scale(map, inverse_norm, is_key, row, begin, end, scratch.raw.get());
    for (int64_t x = 0; x < line; x += kWidth<float>) {
      Lanes<float> total[kDescriptor] = {};
      for (int64_t r = 0; r < raw_; ++r) {
        const Lanes<float> v = load(scratch.raw.get() + r * line + x);
        const float* factor = component_.get() + r * kDescriptor;
        for (int d = 0; d < kDescriptor; ++d) total[d] += factor[d] * v;
      }
      for (int d = 0; d < kDescriptor; ++d) store(out + d * line + x, total[d]);
    }
    if (similarity_ == Similarity::dot && is_key) {
      const int64_t start = map.frame.row_start(row);
      for (int64_t x = begin; x < end; ++x) {
        const float norm = float(1 / inverse_norm[start + x]);
        const float rest = largest_norm_ * largest_norm_ - norm * norm;
        out[(kDescriptor - 1) * line + x - begin] = rest > 0 && std::isfinite(rest) ? std::sqrt(rest) : 0;
      }
    }
  }

 private:
  template <typename Body>
  static void for_each_pixel(const PaddedMap<T>& map, const Body& body) {
    for (int64_t row = 0; row < map.frame.shape.rows(); ++row) {
      const int64_t start = map.frame.row_start(row);
      for (int64_t x = 0; x < map.frame.shape.size[2]; ++x) body(start + x);
    }
  }

  // Frequencies of total order up to a bound that leaves about ten, and enough channels for 16 numbers.
  void choose_frequencies(int64_t channels) {
    int axes = 0;
    for (int axis = 0; axis < kAxes; ++axis) axes += patch_.size[axis] > 1;
    const int64_t bound = axes == 1 ? 9 : axes == 2 ? 3 : 2;
    for (int axis = 0; axis < kAxes; ++axis) {
      const int64_t side = patch_.size[axis];
      waves_[axis] = std::min(side, bound + 1);
      basis_[axis] = Buffer<float>(waves_[axis] * side);
      for (int64_t u = 0; u < waves_[axis]; ++u)
        for (int64_t t = 0; t < side; ++t)
          basis_[axis][u * side + t] =
              float(std::sqrt((u ? 2.0 : 1.0) / double(side)) *
                    std::cos(3.14159265358979323846 * double((2 * t + 1) * u) / double(2 * side)));
    }
    frequency_ = Buffer<int64_t>(kAxes * waves_[0] * waves_[1] * waves_[2]);
    for (int64_t a = 0; a < waves_[0]; ++a)
      for (int64_t b = 0; b < waves_[1]; ++b)
        for (int64_t c = 0; c < waves_[2]; ++c)
          if (a + b + c <= bound) {
            int64_t* f = frequency_.get() + kAxes * frequencies_++;
            f[0] = a, f[1] = b, f[2] = c;
          }
    const int64_t outer = patch_.size[0] * patch_.size[1];
    across_ = Buffer<float>(frequencies_ * outer);
    for (int64_t f = 0; f < frequencies_; ++f)
      for (int64_t i = 0; i < outer; ++i)
        across_[f * outer + i] = basis_[0][frequency_[kAxes * f] * patch_.size[0] + i / patch_.size[1]] *
                                 basis_[1][frequency_[kAxes * f + 1] * patch_.size[1] + i % patch_.size[1]];
    channels_ = std::min<int64_t>(channels, std::max<int64_t>(4, (kDescriptor + frequencies_ - 1) / frequencies_));
    raw_ = channels_ * frequencies_;
    components_ = std::min<int64_t>(raw_, similarity_ == Similarity::dot ? kDescriptor - 1 : kDescriptor);
  }

  // Adds x xᵀ, and for "l2" takes the mean off in the end: only differences count there.
  Buffer<double> moments(const Buffer<float>& samples, int64_t count, int64_t size) const {
    Buffer<double> matrix(size * size, 0.0), mean(size, 0.0);
    Buffer<float> line(size);
    for (int64_t s = 0; s < count && similarity_ == Similarity::l2; ++s)
      for (int64_t i = 0; i < size; ++i) mean[i] += samples[s * size + i] / double(count);
    for (int64_t s = 0; s < count; ++s) {
      for (int64_t i = 0; i < size; ++i) line[i] = float(samples[s * size + i] - mean[i]);
      for (int64_t i = 0; i < size; ++i) {
        const double x = line[i];
        for (int64_t j = 0; j < size; ++j) matrix[i * size + j] += x * line[j];
      }
    }
    return matrix;
  }

  void find_channels(const PaddedMap<T>& map) {
    const int64_t all = map.channels, pixels = map.frame.shape.count();
    const int64_t most = std::clamp<int64_t>((int64_t(1) << 19) / (all * all), 128, 2048);
    const int64_t count = std::min(pixels, most);
    Buffer<float> samples(count * all);
    for (int64_t s = 0; s < count; ++s) {
      const T* pixel = map.pixel(map.frame.number(s * pixels / count));
      for (int64_t c = 0; c < all; ++c) samples[s * all + c] = finite(float(pixel[c]));
    }
    const Buffer<float> directions = principal_directions(moments(samples, count, all), all, channels_);
    channel_ = Buffer<float>(all * kDescriptor, 0.0f);
    for (int64_t c = 0; c < all; ++c)
      for (int64_t j = 0; j < channels_; ++j) channel_[c * kDescriptor + j] = directions[j * all + c];
  }

  void find_components(const PaddedMap<T>& map, const Buffer<T>& inverse_norm) {
    constexpr int64_t kSamples = 1536;
    const int64_t rows = map.frame.shape.rows(), width = map.frame.shape.size[2];
    const int64_t used = std::min(width, kSamples), lines = std::clamp<int64_t>(kSamples / used, 1, rows);
    Buffer<float> samples(lines * used * raw_);
    Scratch scratch;
    for (int64_t i = 0; i < lines; ++i) {
      const int64_t row = (2 * i + 1) * rows / (2 * lines);
      raw_row(map, row, 0, used, scratch);
      scale(map, inverse_norm, true, row, 0, used, scratch.raw.get());
      for (int64_t x = 0; x < used; ++x)
        for (int64_t r = 0; r < raw_; ++r) samples[(i * used + x) * raw_ + r] = scratch.raw[r * pitch(used) + x];
    }
    const Buffer<float> directions = principal_directions(moments(samples, lines * used, raw_), raw_, components_);
    component_ = Buffer<float>(raw_ * kDescriptor, 0.0f);
    for (int64_t d = 0; d < components_; ++d)
      for (int64_t r = 0; r < raw_; ++r) component_[r * kDescriptor + d] = directions[d * raw_ + r];
  }

  static float finite(float x) { return std::isfinite(x) ? x : 0; }

  // "cosine" compares patches of norm 1; "dot" compares the query's direction with keys on a sphere.
  void scale(const PaddedMap<T>& map, const Buffer<T>& inverse_norm, bool is_key, int64_t row, int64_t begin,
             int64_t end, float* raw) const {
    if (similarity_ == Similarity::l2 || (similarity_ == Similarity::dot && is_key)) return;
    const int64_t start = map.frame.row_start(row), width = end - begin, line = pitch(width);
    const float norm = similarity_ == Similarity::dot ? largest_norm_ : 1;
    for (int64_t x = 0; x < width; ++x) {
      const float factor = finite(float(inverse_norm[start + begin + x]) * norm);
      for (int64_t r = 0; r < raw_; ++r) raw[r * line + x] = finite(raw[r * line + x] * factor);
    }
  }

  // Coefficients of every frequency and channel, before the components are taken.
  void raw_row(const PaddedMap<T>& map, int64_t row, int64_t begin, int64_t end, Scratch& scratch) const {
    const Frame& frame = map.frame;
    const int64_t line = pitch(end - begin), outer = patch_.size[0] * patch_.size[1];
    const int64_t filtered_size = waves_[2] * channels_ * line;
    if (!scratch.tag.size()) {
      scratch.tag = Buffer<int64_t>(outer, -1);
      scratch.slot = Buffer<float*>(outer);
      scratch.filtered = Buffer<float>(outer * filtered_size);
      scratch.projected = Buffer<float>(channels_ * (line + patch_.size[2] - 1), 0.0f);
      scratch.raw = Buffer<float>(raw_ * line);
    }
    const int64_t z = row / frame.shape.size[1] + frame.border[0] - patch_.radius(0);
    const int64_t y = row % frame.shape.size[1] + frame.border[1] - patch_.radius(1);
    for (int64_t i = 0; i < outer; ++i) {
      const int64_t at_z = z + i / patch_.size[1], at_y = y + i % patch_.size[1];
      const int64_t padded_row = at_z * frame.padded.size[1] + at_y;
      const int64_t slot = at_z % patch_.size[0] * patch_.size[1] + at_y % patch_.size[1];
      scratch.slot[i] = scratch.filtered.get() + slot * filtered_size;
      if (scratch.tag[slot] == padded_row) continue;
      scratch.tag[slot] = padded_row;
      filter_row(map, padded_row, begin, end, scratch.projected.get(), scratch.slot[i]);
    }
    for (int64_t f = 0; f < frequencies_; ++f) {
      const int64_t first = frequency_[kAxes * f + 2] * channels_ * line;
      const float* factor = across_.get() + f * outer;
      for (int64_t x = 0; x < channels_ * line; x += 2 * kWidth<float>) {
        Lanes<float> a{}, b{};
        for (int64_t i = 0; i < outer; ++i) {
          const float* from = scratch.slot[i] + first + x;
          a += factor[i] * load(from);
          b += factor[i] * load(from + kWidth<float>);
        }
        float* to = scratch.raw.get() + f * channels_ * line + x;
        store(to, a);
        if (x + kWidth<float> < channels_ * line) store(to + kWidth<float>, b);
      }
    }
  }

  // The principal channels of a padded row, filtered along it.
  void filter_row(const PaddedMap<T>& map, int64_t padded_row, int64_t begin, int64_t end, float* projected,
                  float* filtered) const {
    const int64_t line = pitch(end - begin), side = patch_.size[2], taps = line + side - 1;
    const int64_t first = padded_row * map.frame.padded.size[2] + map.frame.border[2] - patch_.radius(2) + begin;
    const int64_t pixels = end - begin + side - 1;
    project(map, first, pixels, taps, projected);
    for (int64_t u = 0; u < waves_[2]; ++u)
      for (int64_t c = 0; c < channels_; ++c)
        for (int64_t x = 0; x < line; x += kWidth<float>) {
          Lanes<float> total{};
          for (int64_t t = 0; t < side; ++t) total += basis_[2][u * side + t] * load(projected + c * taps + x + t);
          store(filtered + (u * channels_ + c) * line + x, total);
        }
  }

  void project(const PaddedMap<T>& map, int64_t first, int64_t pixels, int64_t taps, float* projected) const {
    for (int64_t x = 0; x < pixels; ++x) {
      const T* pixel = map.pixel(first + x);
      Lanes<float> total{};
      for (int64_t c = 0; c < map.channels; ++c) total += float(pixel[c]) * load(channel_.get() + c * kDescriptor);
      total = masked<float>(total, total - total == 0.0f);  // 0 where it is not finite
      for (int64_t j = 0; j < channels_; ++j) projected[j * taps + x] = total[j];
    }
  }

  const Patch& patch_;
  Similarity similarity_;
  int64_t waves_[kAxes], frequencies_ = 0, channels_ = 0, raw_ = 0, components_ = 0;
  float largest_norm_ = 0;
  Buffer<float> basis_[kAxes];  // waves along each axis
  Buffer<float> across_;        // products of the first two, by frequency and row of the patch
  Buffer<float> channel_, component_;
  Buffer<int64_t> frequency_;
};

}  // namespace psal::PSAL_TARGET
PSAL_END_TARGET

#endif  // per-target include guard
