"""Limits of a session; the page states them too."""

MEGA = 10**6
MAX_FILE_BYTES = 100 * MEGA  # of a file
MAX_MESSAGE_BYTES = 8 * MEGA  # of a request without files: settings and the painted mask
MAX_SESSION_BYTES = 1000 * MEGA  # of all files of a session
MAX_PIXELS = 40 * MEGA  # of a picture
MAX_RECONSTRUCT_PIXELS = 12 * MEGA  # of each picture; matching takes about 200 bytes per pixel
MAX_UPSCALED_PIXELS = 16 * MEGA  # of the result
MAX_CONCURRENT_EDITS = 2  # so that one large picture does not block all others
MAX_QUEUE = 100  # events in the queue
PREVIEW_SIDE = 1280  # of the preview
INSIDE_SIDE = 512  # of the pictures on the tab Look inside
IDLE_SECONDS = 600  # after which a session without requests and open pages ends


def megapixels(pixels: int) -> str:
    """Format a pixel count.

    >>> megapixels(12_000_000)
    '12 megapixels'
    """
    return f"{pixels / MEGA:.3g} megapixels"
