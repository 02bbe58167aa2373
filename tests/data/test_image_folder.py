"""Folders of pictures."""

from pathlib import Path

import pytest
from PIL import Image
from support.pictures import write_pictures

from psal.data.image_folder import MissingDataError, list_pictures, open_rgb


def test_pictures_are_found_below_the_folder_in_a_fixed_order(tmp_path: Path) -> None:
    write_pictures(tmp_path)
    (tmp_path / "notes.txt").write_text("no picture")
    (tmp_path / ".hidden").mkdir()
    Image.new("L", (8, 8)).save(tmp_path / ".hidden" / "x.png")
    Image.new("L", (8, 8)).save(tmp_path / "Z.JPEG")
    names = [path.relative_to(tmp_path).as_posix() for path in list_pictures(tmp_path)]
    assert names == ["Z.JPEG", "a/001.png", "a/003.png", "b/000.jpg", "b/002.jpg"]


def test_gray_palette_and_alpha_pictures_become_rgb(tmp_path: Path) -> None:
    for number, mode in enumerate(("L", "P", "RGBA", "1", "I;16")):
        path = tmp_path / f"{number}.png"
        Image.new(mode, (9, 7)).save(path)
        assert open_rgb(path).mode == "RGB"


def test_pictures_are_turned_upright(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.new("RGB", (20, 10)).save(tmp_path / "turned.jpg", exif=exif)
    assert open_rgb(tmp_path / "turned.jpg").size == (10, 20)


def test_folders_without_pictures_are_named(tmp_path: Path) -> None:
    with pytest.raises(MissingDataError, match="nowhere is not a folder: give a folder of pictures"):
        list_pictures(tmp_path / "nowhere")
    with pytest.raises(MissingDataError, match="has no pictures: expected files such as"):
        list_pictures(tmp_path)
