// Descriptors: a patch in 16 components (one cache line), so that patches can be sorted into a tree.
//
//   patch [pixels][C]  →  principal channels  →  lowest DCT frequencies over the patch  →  16 principal components
//
// Every step projects on orthonormal vectors, so distances of descriptors are close to, and never above, those of
// patches. The DCT is separable: each row of the map is filtered along x once and used by all patches that contain it.

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
#include "principal_directions-inl.h"
#include "tuning.h"

PSAL_BEGIN_TARGET
namespace psal::PSAL_TARGET {

constexpr int kDescriptor = 16;  // components

// A row of `width` values, padded to an odd number of vectors: rows of a power of two would all fall into the same few
// sets of the cache.
inline int64_t pitch(int64_t width) { return ((width + kWidth<float> - 1) / kWidth<float> | 1) * kWidth<float>; }

template <typename T>
class Descriptors {
 public:
  // The map whose patches are described.
  struct Source {
    const PaddedMap<T>& map;
    const Buffer<T>& inverse_norm;  // of its patches; unused for "l2"
    bool is_key;
  };

  // Pixels [begin, end) of a row of the inner grid.
  struct Span {
    int64_t row, begin, end;
    int64_t width() const { return end - begin; }
  };

  // Memory of one thread. It keeps the filtered rows that the next row's patches contain too.
  struct Scratch {
    Buffer<int64_t> filtered_row;  // which padded row is in a slot of `filtered`; −1 for none
    Buffer<float*> slot;           // of each row of the patch
    Buffer<float> filtered, projected, coefficients;
  };

  // Computes channels and components from the key's map.
  Descriptors(const PaddedMap<T>& key, const Patch& patch, Similarity similarity, const Buffer<T>& inverse_norm)
      : patch_(patch), similarity_(similarity) {
    int axes = 0;
    for (int axis = 0; axis < kAxes; ++axis) axes += patch.size[axis] > 1;
    int64_t order = kMaxFrequencyOrder[std::max(axes, 1) - 1];
    choose_frequencies(order);
    const int64_t strong = find_channels(key);
    // Few channels that count leave room for more frequencies: with one channel, ten of them would not fill a
    // descriptor.
    while (strong * frequencies_ < kDescriptor && frequencies_ < patch.count()) choose_frequencies(++order);
    coefficients_ = channels_ * frequencies_;
    components_ = std::min<int64_t>(coefficients_, similarity_ == Similarity::dot ? kDescriptor - 1 : kDescriptor);
    find_components({.map = key, .inverse_norm = inverse_norm, .is_key = true});
    if (similarity == Similarity::dot) find_largest_norm(key, inverse_norm);
  }

  // Upper bound on the terms per component, not counting the projection on channels.
  int64_t max_terms() const { return patch_.size[0] * patch_.size[1] + patch_.size[2] + coefficients_; }

  // Writes the descriptors of a span of pixels, component d of pixel x to out[d · pitch(width) + x − begin].
  void row(const Source& source, const Span& span, Scratch& scratch, float* out) const {
    const int64_t line = pitch(span.width());
    compute_coefficients(source.map, span, scratch);
    scale(source, span, scratch.coefficients.get());
    for (int64_t x = 0; x < line; x += kWidth<float>) {
      Lanes<float> total[kDescriptor] = {};
      for (int64_t r = 0; r < coefficients_; ++r) {
        const Lanes<float> v = load(scratch.coefficients.get() + r * line + x);
        const float* factor = component_.get() + r * kDescriptor;
        for (int d = 0; d < kDescriptor; ++d) total[d] += factor[d] * v;
      }
      for (int d = 0; d < kDescriptor; ++d) store(out + d * line + x, total[d]);
    }
    if (similarity_ == Similarity::dot && source.is_key) complete_norms(source, span, out + (kDescriptor - 1) * line);
  }

 private:
  // All frequencies up to a total order.
  void choose_frequencies(int64_t max_order) {
    frequencies_ = 0;
    for (int axis = 0; axis < kAxes; ++axis) set_basis(axis, max_order);
    frequency_ = Buffer<int64_t>(kAxes * waves_[0] * waves_[1] * waves_[2]);
    for (int64_t c = 0; c < waves_[2]; ++c)
      for (int64_t a = 0; a < waves_[0]; ++a)
        for (int64_t b = 0; b < waves_[1]; ++b)
          if (a + b + c <= max_order) {
            int64_t* f = frequency_.get() + kAxes * frequencies_++;
            f[0] = a, f[1] = b, f[2] = c;
          }
    const int64_t rows = patch_.size[0] * patch_.size[1];
    across_ = Buffer<float>(frequencies_ * rows);
    for (int64_t f = 0; f < frequencies_; ++f)
      for (int64_t i = 0; i < rows; ++i)
        across_[f * rows + i] = basis_[0][frequency_[kAxes * f] * patch_.size[0] + i / patch_.size[1]] *
                                basis_[1][frequency_[kAxes * f + 1] * patch_.size[1] + i % patch_.size[1]];
  }

  // The orthonormal DCT-II along one axis.
  void set_basis(int axis, int64_t max_order) {
    const int64_t side = patch_.size[axis];
    waves_[axis] = std::min(side, max_order + 1);
    basis_[axis] = Buffer<float>(waves_[axis] * side);
    for (int64_t u = 0; u < waves_[axis]; ++u)
      for (int64_t t = 0; t < side; ++t)
        basis_[axis][u * side + t] =
            float(std::sqrt((u ? 2.0 : 1.0) / double(side)) *
                  std::cos(3.14159265358979323846 * double((2 * t + 1) * u) / double(2 * side)));
  }

  // For "l2" only differences count, so the mean is removed.
  Buffer<float> directions(const Buffer<float>& samples, int64_t count, int64_t size, int64_t kept) const {
    return principal_directions(second_moments(samples, count, size, similarity_ == Similarity::l2), size, kept);
  }

  // Returns how many of the principal channels are not negligible.
  int64_t find_channels(const PaddedMap<T>& map) {
    const int64_t all = map.channels, pixels = map.grid.shape.count();
    const int64_t budget = (int64_t(1) << 19) / (all * all);  // the moments of many channels are expensive
    const int64_t count = std::min(pixels, std::clamp(budget, kMinChannelSamples, kMaxChannelSamples));
    const auto sample = [&](int64_t s) { return map.pixel(map.grid.padded_index(s * pixels / count)); };
    center_ = Buffer<T>(all, T(0));
    if (similarity_ == Similarity::l2) {
      for (int64_t c = 0; c < all; ++c) {
        double total = 0;
        for (int64_t s = 0; s < count; ++s) total += double(sample(s)[c]);
        center_[c] = std::isfinite(total) ? T(total / double(count)) : T(0);
      }
    }
    Buffer<float> samples(count * all);
    for (int64_t s = 0; s < count; ++s)
      for (int64_t c = 0; c < all; ++c) samples[s * all + c] = finite_or_zero(float(sample(s)[c] - center_[c]));
    const int64_t needed = (kDescriptor + frequencies_ - 1) / frequencies_;
    channels_ = std::min<int64_t>(all, std::max<int64_t>(kMinDescriptorChannels, needed));
    const Buffer<float> found = directions(samples, count, all, channels_);
    channel_ = Buffer<float>(all * kDescriptor, 0.0f);
    for (int64_t c = 0; c < all; ++c)
      for (int64_t j = 0; j < channels_; ++j) channel_[c * kDescriptor + j] = found[j * all + c];
    return count_strong(samples, count, all);
  }

  // How many of the principal channels have a variance that is not negligible beside the largest.
  int64_t count_strong(const Buffer<float>& samples, int64_t count, int64_t all) const {
    constexpr double kNegligible = 1e-5;
    double square[kDescriptor] = {};
    for (int64_t s = 0; s < count; ++s) {
      for (int64_t j = 0; j < channels_; ++j) {
        double along = 0;
        for (int64_t c = 0; c < all; ++c) along += double(samples[s * all + c]) * channel_[c * kDescriptor + j];
        square[j] += along * along;
      }
    }
    const double largest = *std::max_element(square, square + channels_);
    return std::max<int64_t>(
        1, std::count_if(square, square + channels_, [&](double x) { return x > kNegligible * largest; }));
  }

  void find_components(const Source& source) {
    const Shape& shape = source.map.grid.shape;
    const int64_t width = std::min(shape.size[2], kComponentSamples);
    const int64_t rows = std::clamp<int64_t>(kComponentSamples / width, 1, shape.rows());
    Buffer<float> samples(rows * width * coefficients_);
    Scratch scratch;
    for (int64_t i = 0; i < rows; ++i) {
      const Span span = {.row = (2 * i + 1) * shape.rows() / (2 * rows), .begin = 0, .end = width};
      compute_coefficients(source.map, span, scratch);
      scale(source, span, scratch.coefficients.get());
      for (int64_t x = 0; x < width; ++x)
        for (int64_t r = 0; r < coefficients_; ++r)
          samples[(i * width + x) * coefficients_ + r] = scratch.coefficients[r * pitch(width) + x];
    }
    const Buffer<float> found = directions(samples, rows * width, coefficients_, components_);
    component_ = Buffer<float>(coefficients_ * kDescriptor, 0.0f);
    for (int64_t d = 0; d < components_; ++d)
      for (int64_t r = 0; r < coefficients_; ++r) component_[r * kDescriptor + d] = found[d * coefficients_ + r];
  }

  void find_largest_norm(const PaddedMap<T>& key, const Buffer<T>& inverse_norm) {
    for (int64_t row = 0; row < key.grid.shape.rows(); ++row) {
      const int64_t start = key.grid.row_start(row);
      for (int64_t x = 0; x < key.grid.shape.size[2]; ++x) {
        const T norm = 1 / inverse_norm[start + x];
        if (std::isfinite(norm)) largest_norm_ = std::max(largest_norm_, float(norm));
      }
    }
  }

  // "dot": the last component puts all keys on a sphere, so that the largest product becomes the smallest distance.
  void complete_norms(const Source& key, const Span& span, float* last_component) const {
    const int64_t start = key.map.grid.row_start(span.row);
    for (int64_t x = span.begin; x < span.end; ++x) {
      const float norm = float(1 / key.inverse_norm[start + x]);
      const float rest = largest_norm_ * largest_norm_ - norm * norm;
      last_component[x - span.begin] = rest > 0 && std::isfinite(rest) ? std::sqrt(rest) : 0;
    }
  }

  // "cosine" normalizes all patches; "dot" scales queries to the radius of the keys' sphere.
  void scale(const Source& source, const Span& span, float* coefficients) const {
    if (similarity_ == Similarity::l2 || (similarity_ == Similarity::dot && source.is_key)) return;
    const int64_t start = source.map.grid.row_start(span.row), width = span.width(), line = pitch(width);
    const float norm = similarity_ == Similarity::dot ? largest_norm_ : 1;
    for (int64_t x = 0; x < width; ++x) {
      const float factor = finite_or_zero(float(source.inverse_norm[start + span.begin + x]) * norm);
      for (int64_t r = 0; r < coefficients_; ++r)
        coefficients[r * line + x] = finite_or_zero(coefficients[r * line + x] * factor);
    }
  }

  // The coefficients of every frequency and channel, into scratch.coefficients. Frequencies that are equal along x come
  // one after the other; up to four of them share the loads of the filtered rows.
  void compute_coefficients(const PaddedMap<T>& map, const Span& span, Scratch& scratch) const {
    filter_rows(map, span, scratch);
    const auto along_x = [&](int64_t f) { return frequency_[kAxes * f + 2]; };
    for (int64_t f = 0; f < frequencies_;) {
      int64_t shared = 1;
      while (shared < 4 && f + shared < frequencies_ && along_x(f + shared) == along_x(f)) ++shared;
      switch (shared) {
        case 1: filter_across<1>(f, along_x(f), pitch(span.width()), scratch); break;
        case 2: filter_across<2>(f, along_x(f), pitch(span.width()), scratch); break;
        case 3: filter_across<3>(f, along_x(f), pitch(span.width()), scratch); break;
        default: filter_across<4>(f, along_x(f), pitch(span.width()), scratch); break;
      }
      f += shared;
    }
  }

  // The coefficients of `Count` frequencies from f on, which are all `wave` along x.
  template <int Count>
  void filter_across(int64_t f, int64_t wave, int64_t line, Scratch& scratch) const {
    constexpr int w = kWidth<float>;
    const int64_t rows = patch_.size[0] * patch_.size[1], plane = channels_ * line;
    const float* factor = across_.get() + f * rows;
    float* to = scratch.coefficients.get() + f * plane;
    for (int64_t x = 0; x < plane; x += 2 * w) {
      Lanes<float> a[Count], b[Count];  // two vectors of pixels share the loads of the factors
      unrolled<Count>([&](auto g) { a[g] = b[g] = Lanes<float>{}; });
      for (int64_t i = 0; i < rows; ++i) {
        const float* from = scratch.slot[i] + wave * plane + x;
        const Lanes<float> left = load(from), right = load(from + w);
        unrolled<Count>([&](auto g) {
          a[g] += factor[g * rows + i] * left;
          b[g] += factor[g * rows + i] * right;
        });
      }
      unrolled<Count>([&](auto g) {
        store(to + g * plane + x, a[g]);
        if (x + w < plane) store(to + g * plane + x + w, b[g]);
      });
    }
  }

  // Finds or computes the filtered rows of the patches of a span: scratch.slot[i] for row i of the patch.
  void filter_rows(const PaddedMap<T>& map, const Span& span, Scratch& scratch) const {
    const PaddedGrid& grid = map.grid;
    const int64_t line = pitch(span.width()), rows = patch_.size[0] * patch_.size[1];
    const int64_t slot_size = waves_[2] * channels_ * line;
    if (!scratch.filtered_row.size()) {
      scratch.filtered_row = Buffer<int64_t>(rows, -1);
      scratch.slot = Buffer<float*>(rows);
      scratch.filtered = Buffer<float>(rows * slot_size);
      scratch.projected = Buffer<float>(channels_ * (line + patch_.size[2] - 1), 0.0f);
      scratch.coefficients = Buffer<float>(coefficients_ * line);
    }
    const int64_t first_z = span.row / grid.shape.size[1] + grid.border[0] - patch_.radius(0);
    const int64_t first_y = span.row % grid.shape.size[1] + grid.border[1] - patch_.radius(1);
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t z = first_z + i / patch_.size[1], y = first_y + i % patch_.size[1];
      const int64_t padded_row = z * grid.padded.size[1] + y;
      const int64_t slot = z % patch_.size[0] * patch_.size[1] + y % patch_.size[1];
      scratch.slot[i] = scratch.filtered.get() + slot * slot_size;
      if (scratch.filtered_row[slot] == padded_row) continue;
      scratch.filtered_row[slot] = padded_row;
      filter_row(map, padded_row, span, scratch.projected.get(), scratch.slot[i]);
    }
  }

  // The DCT along x of the principal channels of a padded row.
  void filter_row(const PaddedMap<T>& map, int64_t padded_row, const Span& span, float* projected,
                  float* filtered) const {
    const int64_t line = pitch(span.width()), side = patch_.size[2], taps = line + side - 1;
    const int64_t first = padded_row * map.grid.padded.size[2] + map.grid.border[2] - patch_.radius(2) + span.begin;
    project(map, first, span.width() + side - 1, taps, projected);
    for (int64_t u = 0; u < waves_[2];) {  // up to four frequencies share the loads of the pixels
      const int64_t left = waves_[2] - u;
      u += left >= 4   ? filter_along<4>(u, line, taps, projected, filtered)
           : left == 3 ? filter_along<3>(u, line, taps, projected, filtered)
           : left == 2 ? filter_along<2>(u, line, taps, projected, filtered)
                       : filter_along<1>(u, line, taps, projected, filtered);
    }
  }

  // `Count` frequencies from u on; returns how many.
  template <int Count>
  int64_t filter_along(int64_t u, int64_t line, int64_t taps, const float* projected, float* filtered) const {
    const int64_t side = patch_.size[2];
    const float* factor = basis_[2].get() + u * side;
    for (int64_t c = 0; c < channels_; ++c)
      for (int64_t x = 0; x < line; x += kWidth<float>) {
        Lanes<float> total[Count];
        unrolled<Count>([&](auto g) { total[g] = Lanes<float>{}; });
        for (int64_t t = 0; t < side; ++t) {
          const Lanes<float> pixels = load_across(projected + c * taps + x + t);
          unrolled<Count>([&](auto g) { total[g] += factor[g * side + t] * pixels; });
        }
        unrolled<Count>([&](auto g) { store(filtered + ((u + g) * channels_ + c) * line + x, total[g]); });
      }
    return Count;
  }

  // The principal channels of `pixels` pixels, as planes `taps` values apart. Non-finite ones become 0.
  void project(const PaddedMap<T>& map, int64_t first, int64_t pixels, int64_t taps, float* projected) const {
    constexpr int kTogether = 4;  // each addition to a pixel waits for the one before it; those of others need not
    for (int64_t x = 0; x < pixels; x += kTogether) {
      const T* pixel[kTogether];
      Lanes<float> total[kTogether];
      unrolled<kTogether>([&](auto i) {
        pixel[i] = map.pixel(first + std::min(x + i, pixels - 1));
        total[i] = Lanes<float>{};
      });
      for (int64_t c = 0; c < map.channels; ++c) {
        const Lanes<float> direction = load(channel_.get() + c * kDescriptor);
        unrolled<kTogether>([&](auto i) { total[i] += float(pixel[i][c] - center_[c]) * direction; });
      }
      unrolled<kTogether>([&](auto i) {
        const Lanes<float> kept =
            masked<float>(total[i], total[i] - total[i] == 0.0f);  // x − x is NaN if x is not finite
        for (int64_t j = 0; j < channels_; ++j) projected[j * taps + std::min(x + i, pixels - 1)] = kept[int(j)];
      });
    }
  }

  static float finite_or_zero(float x) { return std::isfinite(x) ? x : 0; }

  const Patch& patch_;
  Similarity similarity_;
  int64_t waves_[kAxes];        // frequencies along each axis
  int64_t frequencies_ = 0;     // over all axes
  int64_t channels_ = 0;        // principal channels
  int64_t coefficients_ = 0;    // frequencies × channels
  int64_t components_ = 0;      // of the coefficients: at most 16
  float largest_norm_ = 0;      // of the key's patches; "dot" only
  Buffer<int64_t> frequency_;   // [frequencies][axis]
  Buffer<float> basis_[kAxes];  // [waves][side], along each axis
  Buffer<float> across_;        // [frequencies][rows of the patch]: the product of the first two axes' bases
  Buffer<T> center_;            // [C]: subtracted from all pixels, in the map's own type, before they are rounded
  Buffer<float> channel_;       // [C][16]: principal channels, padded with zeros
  Buffer<float> component_;     // [coefficients][16]: principal components, padded with zeros
};

}  // namespace psal::PSAL_TARGET
PSAL_END_TARGET

#endif  // per-target include guard
