"""CMYK pictures are converted through their color profile."""

import io
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from support.pixels import HEIGHT, SRGB, WIDTH

from psal.io.photo import Photo


def lab_profile() -> bytes:
    """A printer's profile with a table of the corners of the CMYK cube, in Lab."""
    inks = {"c": (55, -37, -50), "m": (48, 74, -3), "y": (89, -5, 93)}
    nodes = []
    for corner in np.ndindex(2, 2, 2, 2):
        used = [inks[name] for name, share in zip("cmy", corner[:3], strict=True) if share]
        lightness = 0 if corner[3] else min([color[0] for color in used], default=100)
        a, b = (0 if corner[3] else int(np.mean([color[k] for color in used] or [0])) for k in (1, 2))
        nodes.append((round(lightness * 2.55), a + 128, b + 128))
    identity = struct.pack(">9i", *(65536 * (k % 4 == 0) for k in range(9)))
    ramp = bytes(range(256))
    table = b"mft1\0\0\0\0" + bytes([4, 3, 2, 0]) + identity + ramp * 4 + bytes(np.array(nodes, np.uint8)) + ramp * 3
    table += b"\0" * (-len(table) % 4)
    white = b"XYZ \0\0\0\0" + struct.pack(">3i", 63190, 65536, 54061)
    text = b"text\0\0\0\0test\0\0\0\0"
    description = b"desc\0\0\0\0" + struct.pack(">I", 5) + b"test\0" + bytes(78) + b"\0"
    tags = {b"A2B0": table, b"wtpt": white, b"cprt": text, b"desc": description + b"\0" * (-len(description) % 4)}
    start, entries, bodies = 128 + 4 + 12 * len(tags), b"", b""
    for name, body in tags.items():
        entries += struct.pack(">4sII", name, start + len(bodies), len(body))
        bodies += body
    body = struct.pack(">I", len(tags)) + entries + bodies
    header = struct.pack(">I4sI4s4s4s", 128 + len(body), b"\0\0\0\0", 0x02400000, b"prtr", b"CMYK", b"Lab ")
    header += struct.pack(">6H", 2024, 1, 1, 0, 0, 0) + b"acsp" + bytes(28) + struct.pack(">3i", 63190, 65536, 54061)
    return header + bytes(128 - len(header)) + body


@pytest.mark.parametrize("suffix", [".jpg", ".tif"])
def test_cmyk_is_converted_through_its_profile(suffix: str, tmp_path: Path) -> None:
    inks = np.zeros((16, 64, 4), np.uint8)
    for k, ink in enumerate([(0, 0, 0, 0), (0, 0, 0, 255), (255, 0, 0, 0), (0, 255, 255, 0)]):
        inks[:, 16 * k : 16 * (k + 1)] = ink
    path = tmp_path / f"photo{suffix}"
    options: dict[str, Any] = {"quality": 95} if suffix == ".jpg" else {}
    Image.fromarray(inks, "CMYK").save(path, icc_profile=lab_profile(), **options)
    photo = Photo.open(path)
    white, black, cyan, red = (photo.pixels[8, 16 * k + 8].astype(int) for k in range(4))
    assert white.min() > 250
    assert black.max() < 5
    assert cyan[0] < 80
    assert cyan[2] > 180
    assert red[0] > 150 > 100 > red[2]
    assert photo.metadata.icc_profile is not None
    assert photo.metadata.icc_profile[16:20] == b"RGB "
    photo.save(tmp_path / "out.jpg")
    with Image.open(tmp_path / "out.jpg") as image:
        assert image.mode == "RGB"


@pytest.mark.parametrize("profile", [None, b"no profile" * 20, SRGB], ids=["none", "damaged", "of RGB"])
def test_cmyk_without_a_usable_profile_is_refused(profile: bytes | None, tmp_path: Path) -> None:
    out = io.BytesIO()
    Image.new("CMYK", (WIDTH, HEIGHT)).save(out, "JPEG", icc_profile=profile)
    (tmp_path / "photo.jpg").write_bytes(out.getvalue())
    with pytest.raises(ValueError, match=r"photo\.jpg is CMYK with.*convert it to RGB"):
        Photo.open(tmp_path / "photo.jpg")
