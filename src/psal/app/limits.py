"""Limits of the server; the page states those that a person may meet."""

from dataclasses import dataclass

MEGA = 10**6
MAX_FILE_BYTES = 100 * MEGA  # of a file
MAX_JSON_BYTES = MEGA  # of a request without a file: settings and strokes
MAX_SESSION_BYTES = 1200 * MEGA  # of all files of a session
MAX_STEP_BYTES = 400 * MEGA  # of the steps that a photograph can go back; the oldest are dropped
MAX_STEPS = 200
MAX_PHOTOS = 8  # open at a time in a session
MAX_SESSIONS = 1000
MAX_PIXELS = 40 * MEGA  # of a picture
MAX_RECONSTRUCT_PIXELS = 12 * MEGA  # of each picture; matching takes about 200 bytes per pixel
MAX_UPSCALED_PIXELS = 16 * MEGA  # of the result
MAX_CONCURRENT_EDITS = 2  # so that one large picture does not block all others
MAX_QUEUE = 100  # jobs that wait
MAX_JOBS_PER_SESSION = 8  # of them of one session
MAX_POINTS = 20_000  # of a stroke or a lasso
MAX_BRUSH = 4000  # pixels
MAX_VARIANTS = 12  # of one fill
MAX_NAME_LENGTH = 80
TILE_SIDE = 512  # pixels
INSIDE_SIDE = 512  # pixels per side of the pictures on the page Look inside


@dataclass(frozen=True)
class Timeouts:
    """Seconds.

    Attributes:
        request: for a request's header to arrive, and between two pieces of its body.
        body: for the whole body.
        idle: until a session without requests and open pages ends: the page may come back until then.
        sweep: between two looks for idle sessions.
        ping: between signs of life on an open page's stream of events.
        close: for connections to end when the server stops.
    """

    request: float = 30.0
    body: float = 600.0
    idle: float = 600.0
    sweep: float = 60.0
    ping: float = 15.0
    close: float = 2.0


def megapixels(pixels: int) -> str:
    """Format a pixel count.

    >>> megapixels(12_000_000)
    '12 megapixels'
    """
    return f"{pixels / MEGA:.3g} megapixels"
