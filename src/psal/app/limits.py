"""How much a session may ask for, in one place, since the page states it too."""

MEGA = 10**6
MAX_FILE_BYTES = 100 * MEGA  # of a file
MAX_MESSAGE_BYTES = 8 * MEGA  # of what is said besides files: settings and the painted mask
MAX_SESSION_BYTES = 1000 * MEGA  # of a session's files at a time
MAX_PIXELS = 40 * MEGA  # of a picture
MAX_RECONSTRUCT_PIXELS = 12 * MEGA  # of either picture; matching all of it takes some 200 bytes a pixel
MAX_UPSCALED_PIXELS = 16 * MEGA  # of the result
MAX_CONCURRENT_EDITS = 2  # so that one large picture does not hold up everybody else
MAX_QUEUE = 100  # events in the queue
PREVIEW_SIDE = 1280  # of what is painted on and shown
INSIDE_SIDE = 512  # of the pictures to look inside
IDLE_SECONDS = 600  # after which a session who asks for nothing and has no page open is taken to have left


def megapixels(pixels: int) -> str:
    """A number of pixels for people.

    >>> megapixels(12_000_000)
    '12 megapixels'
    """
    return f"{pixels / MEGA:.3g} megapixels"
