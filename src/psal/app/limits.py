"""How much a visitor may ask for, in one place, since the page states it too."""

MEGA = 10**6
MOST_BYTES = 100 * MEGA  # of a file
MOST_BYTES_OF_A_MESSAGE = 8 * MEGA  # of what is said besides files: settings and the painted mask
MOST_BYTES_KEPT = 1000 * MEGA  # of a visitor's files at a time
MOST_PIXELS = 40 * MEGA  # of a picture
MOST_PIXELS_REBUILT = 12 * MEGA  # of either picture; matching all of it takes some 200 bytes a pixel
MOST_PIXELS_ENLARGED = 16 * MEGA  # of the result
EDITS_AT_ONCE = 2  # so that one large picture does not hold up everybody else
MOST_WAITING = 100  # events in the queue
PREVIEW_SIDE = 1280  # of what is painted on and shown
INSIDE_SIDE = 512  # of the pictures to look inside
IDLE_SECONDS = 600  # after which a visitor who asks for nothing and has no page open is taken to have left


def megapixels(pixels: int) -> str:
    """A number of pixels for people.

    >>> megapixels(12_000_000)
    '12 megapixels'
    """
    return f"{pixels / MEGA:.3g} megapixels"
