import os
import subprocess
import sys
from collections.abc import Iterator

import hypothesis
import pytest
import torch
from support.commands import Run

# Triton's kernels run in its interpreter. It has to know before it is imported, which `import psal` does.
os.environ.setdefault("TRITON_INTERPRET", "1")

# Every run uses the same examples, but for `make fuzz`, which draws new ones.
hypothesis.settings.register_profile("fuzz", deadline=None, max_examples=12_500, database=None)
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
def run_here(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], restored_threads: None
) -> Iterator[Run]:
    """The command line in this process, which saves the start of another one."""
    import psal.cli.main

    def call(*arguments: object) -> subprocess.CompletedProcess[str]:
        monkeypatch.setattr(sys, "argv", ["psal", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            psal.cli.main.main()
        said = capsys.readouterr()
        return subprocess.CompletedProcess([], int(stopped.value.code or 0), said.out, said.err)

    yield call
    torch.set_flush_denormal(False)  # commands that train turn it on


@pytest.fixture
def fresh_compiler() -> Iterator[None]:
    """Clear the caches of torch.compile before and after a test."""
    torch.compiler.reset()
    yield
    torch.compiler.reset()
