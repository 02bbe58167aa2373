import os
from pathlib import Path

import pytest

from psal.experiments.gmflow import wheel


@pytest.fixture(scope="session")
def published() -> Path:
    """The wheel with the published network, for slow tests; nothing is downloaded."""
    path = os.environ.get("PSAL_GMFLOW_WHEEL")
    if path is None:
        pytest.skip(f"PSAL_GMFLOW_WHEEL is not set to the path of the wheel: {wheel.DOWNLOAD}")
    return Path(path)
