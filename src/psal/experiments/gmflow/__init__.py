"""GMFlow, a published network for optical flow, with its attention replaced.

GMFlow (Xu et al., CVPR 2022) finds the flow between two frames by global matching: softmax over the dot products of all
pairs of 1/8-resolution features. A global self-attention then propagates flow to where it could not be found.
Here other attention takes the place of these two. The weights stay as they are.
"""
