// Constants that trade speed against quality or memory. benchmarks/constants.py builds the kernels with each of them
// changed, and measures time and quality against these values into results/constants.json; docs/search.md shows it.

#ifndef PSAL_KERNELS_TUNING_H_
#define PSAL_KERNELS_TUNING_H_

#include <cstdint>

namespace psal {

// Descriptors (kernels/descriptor-inl.h).
constexpr int kPcaIterations = 12;           // of the orthogonal iteration
constexpr int64_t kMinChannelSamples = 512;  // pixels from which the principal channels are computed
constexpr int64_t kMaxChannelSamples = 2048;
constexpr int64_t kComponentSamples = 1536;          // patches from which the principal components are computed
constexpr int64_t kMinDescriptorChannels = 4;        // principal channels that are kept, unless the map has fewer
constexpr int64_t kMaxFrequencyOrder[] = {9, 3, 2};  // total DCT order, by long axes of the patch; or more, see there

// Tree seeding (kernels/tree-inl.h, kernels/sweep-inl.h).
constexpr int64_t kLeafSize = 64;       // keys per leaf, within a factor of 3/4 to 3/2
constexpr int64_t kSubtreeKeys = 4096;  // subtrees of so few keys are built as a whole: descriptors stay in the cache
constexpr int kSplitSamples = 48;       // keys from which the axis and the median of a split are estimated

// How thoroughly the tree is searched (kernels/tree_seeds-inl.h).
struct SeedPlan {
  int64_t period;       // it is searched where z + y + x is a multiple: 2 is a checkerboard
  int64_t poor_period;  // the same where the match so far is worse than the average
  int64_t leaves;       // that are visited, closest first, the query's own included; at least 1
  bool only_if_poor;    // they are visited only where the match is worse than the average
  int64_t spare;        // candidates beyond k whose exact cost is computed
};
constexpr SeedPlan kUsualPlan = {4, 2, 4, true, 0};
constexpr SeedPlan kThoroughPlan = {1, 1, 8, false, 2};  // for small patches, and for few queries
constexpr SeedPlan kNoisePlan = {1, 1, 16, false, 24};
constexpr int64_t kSmallPatch = 9;        // pixels: propagation is of little use, and descriptors lose nothing
constexpr int64_t kFewQueries = 8;        // keys per query from which the search takes less time than the tree
constexpr double kNoiseThreshold = 0.67;  // see TreeSeeds::noisiness()

// Sweeps (kernels/sweep-inl.h). A chunk has at least this many rows and pixels.
constexpr int64_t kChunkRows = 16;
constexpr int64_t kChunkPixels = 4096;
constexpr int64_t kBorderDraws = 4;      // random keys of the border that each pixel at the border tries
constexpr int64_t kIncrementalGain = 3;  // face_changes() is used if a patch has this many times the vectors of a face

// Costs (kernels/patch_sum-inl.h).
constexpr int64_t kBoundedMinVectors = 64;  // from so many vectors per patch, stopping early saves more than it costs

// Jump flooding (kernels/lower_bound-inl.h).
constexpr int64_t kLowerBoundMinVectors = 4;  // up to this many vectors per patch, the full cost is cheap enough

// Attention (kernels/links-inl.h, window_tile-inl.h).
constexpr int64_t kTermCapacity = 1024;  // terms of a softmax that are buffered, and exponentiated at once
constexpr int64_t kTileRows = 8;         // of pixels that share the origin of their exponentials
constexpr int64_t kTileColumns = 64;     // the same; like the rows, it must not depend on the thread count

// Threads. A task's size must not depend on the thread count, or results would.
constexpr int64_t kRowsPerTask = 8;             // light work per pixel, such as copying
constexpr int64_t kDescriptorRowsPerTask = 16;  // neighboring rows share filtered rows
constexpr int64_t kWindowRowsPerTask = 2;       // heavy work per pixel: a sum over the window
constexpr int64_t kGradientRowsPerTask = 8;     // the same, for two sums over the window; more for large windows
constexpr int64_t kQueriesPerTask = 1024;
constexpr int64_t kLeavesPerTask = 32;
constexpr int64_t kSequentialBatchPixels = 16384;  // maps of at least this size use all threads, one map at a time

}  // namespace psal

#endif  // PSAL_KERNELS_TUNING_H_
