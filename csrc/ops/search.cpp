// The ops search, score and score_backward.

#include <cstring>
#include <optional>
#include <tuple>

#include "../simd/dispatch.h"
#include "tensors.h"

namespace psal {
namespace {

using torch::stable::contiguous;
using torch::stable::new_empty;

template <typename T>
Problem<T> problem_of(const Tensor& query, const Tensor& key, int64_t b, const std::vector<int64_t>& patch_size,
                      int64_t similarity, int64_t padding) {
  return {view_of<T>(query, b), view_of<T>(key, b),   shape_of(query),        shape_of(key),
          query.size(1),        patch_of(patch_size), Similarity(similarity), Padding(padding)};
}

std::vector<int64_t> matches_shape(const Tensor& query, int64_t neighbors) {
  std::vector<int64_t> shape{query.size(0), neighbors};
  for (int64_t axis = 2; axis < query.dim(); ++axis) shape.push_back(query.size(axis));
  return shape;
}

std::tuple<Tensor, Tensor> search(const Tensor& query, const Tensor& key, const std::optional<Tensor>& key_mask,
                                  const std::optional<Tensor>& query_mask, const std::optional<Tensor>& init_index,
                                  const Tensor& seed, const std::vector<int64_t>& patch_size, int64_t neighbors,
                                  int64_t iterations, int64_t similarity, int64_t init, int64_t padding) {
  const std::vector<int64_t> shape = matches_shape(query, neighbors);
  const Tensor index = new_empty(query, shape, ScalarType::Long), score = new_empty(query, shape);
  const auto whole = [](const std::optional<Tensor>& x) { return x ? std::optional(contiguous(*x)) : std::nullopt; };
  const auto keys = whole(key_mask), queries = whole(query_mask), given = whole(init_index);
  const int64_t pixels = shape_of(query).count();
  uint64_t seed_value;
  std::memcpy(&seed_value, seed.const_data_ptr(), sizeof seed_value);
  for_type(query, [&](auto zero) {
    using T = decltype(zero);
    for_batch(query.size(0), pixels, [&](int64_t b) {
      kernels().of<T>().search(
          {problem_of<T>(query, key, b, patch_size, similarity, padding), keys ? element<bool>(*keys, b) : nullptr,
           queries ? element<bool>(*queries, b) : nullptr, given ? element<int64_t>(*given, b) : nullptr,
           given ? given->size(1) : 0, seed_value, uint64_t(b * pixels), neighbors, iterations, Init(init),
           element<int64_t>(index, b), element<T>(score, b)});
    });
  });
  return {index, score};
}

Tensor score(const Tensor& query, const Tensor& key, const Tensor& index, const std::vector<int64_t>& patch_size,
             int64_t similarity, int64_t padding) {
  const Tensor found = contiguous(index), out = new_empty(query, matches_shape(query, index.size(1)));
  for_type(query, [&](auto zero) {
    using T = decltype(zero);
    for_batch(query.size(0), shape_of(query).count(), [&](int64_t b) {
      kernels().of<T>().score({problem_of<T>(query, key, b, patch_size, similarity, padding), index.size(1),
                               element<int64_t>(found, b), element<T>(out, b)});
    });
  });
  return out;
}

std::tuple<Tensor, Tensor> score_backward(const Tensor& grad, const Tensor& query, const Tensor& key,
                                          const Tensor& index, const Tensor& score,
                                          const std::vector<int64_t>& patch_size, int64_t similarity, int64_t padding) {
  const Tensor grad_score = contiguous(grad), found = contiguous(index), scores = contiguous(score);
  const Tensor grad_query = new_empty(query, query.sizes()), grad_key = new_empty(key, key.sizes());
  for_type(query, [&](auto zero) {
    using T = decltype(zero);
    for_batch(query.size(0), shape_of(query).count(), [&](int64_t b) {
      kernels().of<T>().score_gradient({problem_of<T>(query, key, b, patch_size, similarity, padding), index.size(1),
                                        element<int64_t>(found, b), element<T>(scores, b), element<T>(grad_score, b),
                                        element<T>(grad_query, b), element<T>(grad_key, b)});
    });
  });
  return {grad_query, grad_key};
}

}  // namespace
}  // namespace psal

STABLE_TORCH_LIBRARY_IMPL(psal, CPU, m) {
  m.impl("search", TORCH_BOX(&psal::search));
  m.impl("score", TORCH_BOX(&psal::score));
  m.impl("score_backward", TORCH_BOX(&psal::score_backward));
}
