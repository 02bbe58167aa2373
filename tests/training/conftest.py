from pathlib import Path

import pytest
from support.frames import write_davis


@pytest.fixture
def davis(tmp_path: Path) -> Path:
    """A data set with three sequences for training and one for previews."""
    sequences = {"bear": ("train", 4), "cat": ("train", 3), "dog": ("train", 5), "swan": ("val", 13)}
    return write_davis(tmp_path / "DAVIS", sequences)
