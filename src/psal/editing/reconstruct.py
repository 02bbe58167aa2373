"""Rebuild a picture out of the patches of another one: the test of how well patches are matched."""

from typing import Any

from psal.editing.shift_map import color_shifts
from psal.functional import aggregate, patch_match
from psal.io.pictures import ImageLike, Progress, open_picture
from psal.luminance import luminance
from psal.seeds import check_seed, draw_seed

PATCH = 7
NEIGHBORS = 3


def reconstruct(
    image: ImageLike,
    reference: ImageLike,
    *,
    seed: int | None = None,
    progress: Progress | None = None,
    return_shifts: bool = False,
) -> Any:
    """Rebuild a picture with nothing but the pixels of a reference.

    Every patch of 7 × 7 pixels finds the three most similar ones of the reference; a pixel is the mean of what all
    patches over it found, weighted by how similar they are. Takes about 200 bytes of memory for each pixel of the
    larger of the two.

    Args:
        image: what is rebuilt; a path, a Pillow image, an array or a tensor.
        reference: what it is made of, of any of these kinds and any size. If one of the two is grey and the other is
            not, the patches are compared by luminance.
        seed: of the search; None draws one from torch's generator.
        progress: called with the share that is done, 0..1.
        return_shifts: also return the matches as a picture, as :func:`psal.editing.shift_map.color_shifts` colours
            them: the hue is the direction to the best match (red right, yellow-green down, cyan left, violet up), the
            saturation the distance, white for none.

    Returns:
        The rebuilt picture: of the kind and size of ``image`` (a :class:`psal.Photo` for a path), grey if the
        reference is. With ``return_shifts`` that and an RGB picture of the same kind and size.

    Raises:
        ValueError, TypeError: if an argument is not as described.

    >>> import torch
    >>> reconstruct(torch.rand(3, 20, 30), torch.rand(3, 24, 17)).shape
    torch.Size([3, 20, 30])
    """
    check_seed(seed)
    picture, source = open_picture(image), open_picture(reference, "reference").color
    query, key = picture.color, source
    if len(query) != len(key):
        query, key = luminance(query), luminance(key)
    neighbors = min(NEIGHBORS, key[0].numel())
    matches = patch_match(query[None], key[None], patch_size=PATCH, neighbors=neighbors, seed=int(draw_seed(seed)))
    if progress:
        progress(0.7)
    # Scores are sums over all numbers of a patch: "similar" means as similar as matches of these pictures are.
    temperature = max(-float(matches.score[:, 0].mean()), 1e-6)
    rebuilt = picture.restore(aggregate(matches, source[None], patch_size=PATCH, temperature=temperature)[0])
    shifts = picture.restore(color_shifts(matches, source.shape[2]) / 255) if return_shifts else None
    if progress:
        progress(1.0)
    return (rebuilt, shifts) if return_shifts else rebuilt
