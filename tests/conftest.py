from collections.abc import Iterator

import hypothesis
import pytest
import torch

# The same examples on every run; tests marked slow look for new ones.
hypothesis.settings.register_profile("same", deadline=None, max_examples=60, derandomize=True, database=None)
hypothesis.settings.load_profile("same")


@pytest.fixture(autouse=True)
def _torch_seed() -> None:
    """What is drawn from torch's generator does not depend on which tests ran before."""
    torch.manual_seed(0)


@pytest.fixture
def restored_threads() -> Iterator[None]:
    """Puts torch's number of threads back after a test that changes it."""
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def fresh_compiler() -> Iterator[None]:
    """Forgets what torch.compile compiled for other tests."""
    torch.compiler.reset()
    yield
    torch.compiler.reset()
