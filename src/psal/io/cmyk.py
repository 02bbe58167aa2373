"""CMYK pictures as RGB, through their color profile."""

import io
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageCms

SRGB = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()


def cmyk_to_srgb(image: Image.Image) -> NDArray[Any]:
    """Convert a CMYK image to sRGB ``(H, W, 3)``, relative colorimetric with black point compensation.

    Raises:
        ValueError: if it has no usable profile: without one, its colors are unknown.
    """
    profile = image.info.get("icc_profile")
    if not profile:
        raise ValueError("is CMYK without a color profile: convert it to RGB")
    try:
        converted = ImageCms.profileToProfile(
            image, ImageCms.ImageCmsProfile(io.BytesIO(profile)), ImageCms.ImageCmsProfile(io.BytesIO(SRGB)),
            renderingIntent=ImageCms.Intent.RELATIVE_COLORIMETRIC, outputMode="RGB",
            flags=ImageCms.Flags.BLACKPOINTCOMPENSATION,
        )  # fmt: skip
    except (ImageCms.PyCMSError, OSError) as error:
        raise ValueError(f"is CMYK with an unusable color profile: convert it to RGB ({error})") from error
    return np.asarray(converted)
