// All kernels, compiled for the instruction set that is in force where this is included, in namespace PSAL_PATH.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "kernels.h"

#ifdef PSAL_TARGET  // after the standard headers: what they define stays for any machine
#ifdef __clang__
#pragma clang attribute push(__attribute__((target(PSAL_TARGET))), apply_to = function)
#else
#define PSAL_PRAGMA(text) _Pragma(#text)
#define PSAL_GCC_TARGET(name) PSAL_PRAGMA(GCC target(name))
PSAL_GCC_TARGET(PSAL_TARGET)
#endif
#endif

namespace psal::PSAL_PATH {
#include "lanes.h"
#include "memory.h"
#include "random.h"
#include "padded_map.h"
#include "similarity.h"
#include "neighbors.h"
#include "descriptor.h"
#include "tree.h"
#include "start.h"
#include "seeds.h"
#include "lower_bound.h"
#include "jump_flooding.h"
#include "sweep.h"
#include "search.h"
#include "links.h"
#include "score.h"
#include "attend.h"

extern const Kernels kernels;
const Kernels kernels = {
    {search<float>, score<float>, score_gradient<float>, attend<float>, attend_gradient<float>},
    {search<double>, score<double>, score_gradient<double>, attend<double>, attend_gradient<double>},
};
}  // namespace psal::PSAL_PATH

#if defined(PSAL_TARGET) && defined(__clang__)
#pragma clang attribute pop
#endif
