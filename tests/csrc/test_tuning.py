"""Every tuned constant of the kernels is measured by benchmarks/constants.py."""

import re

from benchmarks.constants import TUNING, VARIANTS
from benchmarks.kernel_build import ROOT


def test_every_constant_has_variants_that_differ_from_its_default() -> None:
    constants = dict(re.findall(r"^constexpr \w+ (k[\w\[\]]+) = ([^;]+);", (ROOT / TUNING).read_text(), re.MULTILINE))
    assert set(VARIANTS) == set(constants)
    for name, (_, values) in VARIANTS.items():
        assert constants[name] not in values
