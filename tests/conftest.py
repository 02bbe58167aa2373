from collections.abc import Iterator

import hypothesis
import pytest
import torch

# Every run uses the same examples, but for `make fuzz`, which draws new ones.
hypothesis.settings.register_profile("fuzz", deadline=None, max_examples=25_000, database=None)
hypothesis.settings.register_profile("same", deadline=None, max_examples=60, derandomize=True, database=None)
hypothesis.settings.load_profile("same")


@pytest.fixture(autouse=True)
def _torch_seed() -> None:
    """Seed torch's generator, so that tests do not depend on which ones ran before."""
    torch.manual_seed(0)


@pytest.fixture
def restored_threads() -> Iterator[None]:
    """Restore torch's number of threads after a test that changes it."""
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def fresh_compiler() -> Iterator[None]:
    """Clear the caches of torch.compile before and after a test."""
    torch.compiler.reset()
    yield
    torch.compiler.reset()
