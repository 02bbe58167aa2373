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

The tuned constants were chosen by LPIPS on photographs of photos/train, with square, object-shaped and free-form holes,
and for time. ``python -m benchmarks.fill_constants`` varies each alone; docs/performance.md shows the results.

A prototype gained nothing from patches of 9 pixels, three neighbors, or a global search at fine levels. Nor did, on 100
photographs of each kind: moving seams to where they are least visible, one pyramid level more, the mean brightness of a
wider window as a further channel.
"""
