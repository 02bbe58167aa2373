"""Steps of :func:`psal.inpaint`, in the order in which a hole passes through them.

- :mod:`.fill_request`: the picture, the hole and what leads the search
- :mod:`.variants`: several fills of one hole
- :mod:`.hole_windows`: windows of a large picture, each filled by itself
- :mod:`.coarse_to_fine`: the loop over the pyramid, :func:`~.coarse_to_fine.fill_hole`
- :mod:`.masked_pyramid`: colors and two texture channels at every size, from known pixels only
- :mod:`.hole_geometry`: depth of a hole, patches that touch it, patches that may be copied
- :mod:`.window_atlas`: windows around all holes, packed into one small map
- :mod:`.level_fill`: the state of the fill at one level
- :mod:`.onion_peeling`: first fill of a hole, ring by ring
- :mod:`.guide`: first fill after a rough one, which then leads the search
- :mod:`.patch_search`: nearest patches for the hole and its surroundings
- :mod:`.patch_voting`: colors from the patches found
- :mod:`.shift_upsampling`: start of a level from the matches of the coarser one
- :mod:`.poisson_blending`, :mod:`.poisson_solver`: final pixels without visible seams

Tuned constants, each varied alone: PSNR in the hole in dB and fraction of the local variance that is kept, for ten
photographs of 512 pixels (places512_object) with three holes of 48² pixels each, two seeds. The defaults give 18.62 dB,
0.72; seeds differ by 0.05 dB, 0.02. Blurred fills win in PSNR, so the variance counts as much. All were measured with
4096 for MAX_SAMPLED_KEYS. 2048 takes a sixth less time, and changes LPIPS by −0.2 % (95 % interval −1.7 to 1.4 %) on 40
photographs of photos/train with three holes of 48² pixels.

=====================  ========  ==================================================================
constant               default   others
=====================  ========  ==================================================================
TEXTURE_WEIGHT         5.66      0: 19.08, 0.54; 2: 18.80, 0.66; 8: 18.65, 0.70; 15: 18.20, 0.67
TEXTURE_WINDOW         5         3: 18.86, 0.66; 7: 18.58, 0.70; 9: 18.59, 0.76
MATCH_DECAY            1.6       1: 18.67, 0.70; 1.3: 18.64, 0.71; 2: 18.68, 0.71; 2.5: 18.69, 0.71
MIN_MATCH_WEIGHT       0.02      0.005: 18.61, 0.72; 0.1: 18.62, 0.72
VOTE_DECAY             1.6       1: 18.48, 0.70; 1.3: 18.54, 0.70; 2: 18.63, 0.71
VOTE_VARIANCE          0.25      0.1: 18.76, 0.71; 0.5: 18.74, 0.69; 1: 18.78, 0.71
CANDIDATE_RADII        16, 8     8: 18.60, 0.73; 32, 16: 18.60, 0.72; 16, 8, 4: 18.65, 0.72
SWEEPS                 2         1: 18.48, 0.71; 3: 18.68, 0.71
MAX_SAMPLED_KEYS       2048      1024: 18.57, 0.70; 16384: 18.60, 0.72
REGION_MARGIN          48        16: 18.58, 0.72; 96: 18.62, 0.72
MAX_TURNS              6, 4, 2   3, 2, 1: 18.70, 0.72; 12, 8, 4: 18.83, 0.70
MIN_CHANGE             0.002     0: 18.63, 0.72; 0.0005: 18.61, 0.72; 0.008: 18.57, 0.72
CORRECTION_RANGE       64        16: 18.60, 0.72; 256 and 4096: 18.61, 0.72; it matters in larger holes
=====================  ========  ==================================================================

The figures are of an earlier texture channel, |dx| + |dy| with a weight of 4. For the present two channels, weights of
4, 5.66 and 8 were compared by LPIPS: 4 and 5.66 are alike, 8 is better for objects and worse for squares of 48 pixels.

A prototype gained nothing from patches of 9 pixels, three neighbors, or a global search at fine levels.
"""
