// From a similarity that is known at run time to one that is a template argument.

#if defined(PSAL_KERNELS_WITH_SIMILARITY_INL_H_) == defined(PSAL_TARGET_TOGGLE)
#ifdef PSAL_KERNELS_WITH_SIMILARITY_INL_H_
#undef PSAL_KERNELS_WITH_SIMILARITY_INL_H_
#else
#define PSAL_KERNELS_WITH_SIMILARITY_INL_H_
#endif

#include <type_traits>

#include "../simd/target.h"
#include "arguments.h"

PSAL_BEGIN_TARGET
namespace psal::PSAL_TARGET {

template <Similarity S>
using SimilarityConstant = std::integral_constant<Similarity, S>;

// Calls body(SimilarityConstant<S>()), so that the body can use its argument as a template argument.
template <typename Body>
inline void with_similarity(Similarity similarity, const Body& body) {
  switch (similarity) {
    case Similarity::l2: return body(SimilarityConstant<Similarity::l2>());
    case Similarity::dot: return body(SimilarityConstant<Similarity::dot>());
    case Similarity::cosine: return body(SimilarityConstant<Similarity::cosine>());
  }
}

}  // namespace psal::PSAL_TARGET
PSAL_END_TARGET

#endif  // per-target include guard
