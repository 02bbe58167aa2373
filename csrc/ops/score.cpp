// The ops score and score_backward.

#include <tuple>

#include "../simd/dispatch.h"
#include "tensors.h"

namespace psal {
namespace {

using torch::stable::contiguous;
using torch::stable::new_empty;

Tensor score(const Tensor& query, const Tensor& key, const Tensor& index_, const std::vector<int64_t>& patch_size,
             int64_t similarity, int64_t padding) {
  const Tensor index = contiguous(index_), score = new_empty(query, sizes_on_grid_of(query, index.size(1)));
  with_type(query, [&](auto zero) {
    using T = decltype(zero);
    for_batch(query.size(0), shape_of(query).count(), [&](int64_t b) {
      kernels().of<T>().score({.problem = problem_of<T>(query, key, b, {patch_size, similarity, padding}),
                               .neighbors = index.size(1),
                               .index = data_of<int64_t>(index, b),
                               .score = data_of<T>(score, b)});
    });
  });
  return score;
}

std::tuple<Tensor, Tensor> score_backward(const Tensor& grad_score_, const Tensor& query, const Tensor& key,
                                          const Tensor& index_, const Tensor& score_,
                                          const std::vector<int64_t>& patch_size, int64_t similarity, int64_t padding) {
  const Tensor grad_score = contiguous(grad_score_), index = contiguous(index_), score = contiguous(score_);
  const Tensor grad_query = new_empty(query, query.sizes()), grad_key = new_empty(key, key.sizes());
  with_type(query, [&](auto zero) {
    using T = decltype(zero);
    for_batch(query.size(0), shape_of(query).count(), [&](int64_t b) {
      kernels().of<T>().score_gradient({.problem = problem_of<T>(query, key, b, {patch_size, similarity, padding}),
                                        .neighbors = index.size(1),
                                        .index = data_of<int64_t>(index, b),
                                        .score = data_of<T>(score, b),
                                        .grad_score = data_of<T>(grad_score, b),
                                        .grad_query = data_of<T>(grad_query, b),
                                        .grad_key = data_of<T>(grad_key, b)});
    });
  });
  return {grad_query, grad_key};
}

}  // namespace
}  // namespace psal

STABLE_TORCH_LIBRARY_IMPL(psal, CPU, m) {
  m.impl("score", TORCH_BOX(&psal::score));
  m.impl("score_backward", TORCH_BOX(&psal::score_backward));
}
