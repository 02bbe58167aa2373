// The op search.

#include <cstring>
#include <optional>
#include <tuple>

#include "../simd/dispatch.h"
#include "tensors.h"

namespace psal {
namespace {

using torch::stable::contiguous;
using torch::stable::new_empty;

std::tuple<Tensor, Tensor> search(const Tensor& query, const Tensor& key, const std::optional<Tensor>& key_mask_,
                                  const std::optional<Tensor>& query_mask_, const std::optional<Tensor>& init_index_,
                                  const Tensor& seed, const std::vector<int64_t>& patch_size, int64_t neighbors,
                                  int64_t iterations, int64_t similarity, int64_t init, int64_t padding) {
  const std::vector<int64_t> sizes = sizes_on_grid_of(query, neighbors);
  const Tensor index = new_empty(query, sizes, ScalarType::Long), score = new_empty(query, sizes);
  const auto contiguous_if_given = [](const std::optional<Tensor>& tensor) {
    return tensor ? std::optional(contiguous(*tensor)) : std::nullopt;
  };
  const auto key_mask = contiguous_if_given(key_mask_), query_mask = contiguous_if_given(query_mask_),
             init_index = contiguous_if_given(init_index_);
  const int64_t pixels = shape_of(query).count();
  uint64_t seed_value;
  std::memcpy(&seed_value, seed.const_data_ptr(), sizeof seed_value);
  with_type(query, [&](auto zero) {
    using T = decltype(zero);
    for_batch(query.size(0), pixels, [&](int64_t b) {
      kernels().of<T>().search({.problem = problem_of<T>(query, key, b, {patch_size, similarity, padding}),
                                .key_mask = key_mask ? data_of<bool>(*key_mask, b) : nullptr,
                                .query_mask = query_mask ? data_of<bool>(*query_mask, b) : nullptr,
                                .init_index = init_index ? data_of<int64_t>(*init_index, b) : nullptr,
                                .init_count = init_index ? init_index->size(1) : 0,
                                .seed = seed_value,
                                .first_counter = uint64_t(b * pixels),
                                .neighbors = neighbors,
                                .iterations = iterations,
                                .init = Init(init),
                                .index = data_of<int64_t>(index, b),
                                .score = data_of<T>(score, b)});
    });
  });
  return {index, score};
}

}  // namespace
}  // namespace psal

STABLE_TORCH_LIBRARY_IMPL(psal, CPU, m) { m.impl("search", TORCH_BOX(&psal::search)); }
