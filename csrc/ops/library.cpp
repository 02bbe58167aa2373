// The schemas of all ops.

#include <torch/csrc/stable/library.h>

STABLE_TORCH_LIBRARY(psal, m) {
  m.def(
      "search(Tensor query, Tensor key, Tensor? key_mask, Tensor? query_mask, Tensor? init_index, Tensor seed, "
      "int[] patch_size, int neighbors, int iterations, int similarity, int init, int padding_mode) -> "
      "(Tensor index, Tensor score)");
  m.def("score(Tensor query, Tensor key, Tensor index, int[] patch_size, int similarity, int padding_mode) -> Tensor");
  m.def(
      "score_backward(Tensor grad_score, Tensor query, Tensor key, Tensor index, Tensor score, int[] patch_size, "
      "int similarity, int padding_mode) -> (Tensor grad_query, Tensor grad_key)");
  m.def(
      "attend(Tensor index, Tensor score, Tensor value, int[] patch_size, float temperature) -> "
      "(Tensor out, Tensor log_mass)");
  m.def(
      "attend_backward(Tensor grad, Tensor index, Tensor score, Tensor value, Tensor out, Tensor log_mass, "
      "int[] patch_size, float temperature) -> (Tensor grad_score, Tensor grad_value)");
  m.def("solve_poisson(Tensor right_side, Tensor unknown, Tensor domain, float screening, float tolerance) -> Tensor");
  m.def("simd_path() -> int");
  m.def("set_simd_path(int path) -> int");
}
