"""Lengths on the command line: pixels, or percent of the photo's side."""

import re

LENGTH = re.compile(r"(\d+(?:\.\d+)?)(%|px)?")


def check_length(text: str) -> str:
    """Check that a text is a length such as 120, 120px or 25%.

    Raises:
        ValueError: if it is not.
    """
    found = LENGTH.fullmatch(text.strip())
    if found is None or (found[2] != "%" and "." in found[1]):
        raise ValueError(f"{text!r} is not a length: give pixels, such as 120, or percent, such as 25%")
    return text


def length_in_pixels(text: str, side: int) -> int:
    """Convert a length to pixels; percent are those of a side with ``side`` pixels.

    >>> length_in_pixels("25%", 301), length_in_pixels("12", 301)
    (75, 12)
    """
    found = LENGTH.fullmatch(text.strip())
    assert found is not None, text
    return round(float(found[1]) * side / 100) if found[2] == "%" else int(found[1])
