from pathlib import Path

import pytest
from support.commands import mask, photo, save


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """A photo and a mask."""
    return save(tmp_path / "in" / "photo.png", photo()), save(tmp_path / "in" / "mask.png", mask())
