"""Steps of :func:`psal.inpaint`, in the order in which a hole passes through them.

- :mod:`.coarse_to_fine`: the loop over the pyramid, :func:`~.coarse_to_fine.fill_hole`
- :mod:`.masked_pyramid`: colors and a texture channel at every size, from known pixels only
- :mod:`.hole_geometry`: depth of a hole, patches that touch it, patches that may be copied
- :mod:`.window_atlas`: windows around all holes, packed into one small map
- :mod:`.level_fill`: the state of the fill at one level
- :mod:`.onion_peeling`: first fill of a hole, ring by ring
- :mod:`.patch_search`: nearest patches for the hole and its surroundings
- :mod:`.patch_voting`: colors from the patches found
- :mod:`.shift_upsampling`: start of a level from the matches of the coarser one
- :mod:`.poisson_blending`, :mod:`.poisson_solver`: final pixels without visible seams
"""
