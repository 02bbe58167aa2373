"""Build the compiled part, psal._C; all other settings are in pyproject.toml."""

import os
from pathlib import Path

from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension

# The stable ABIs of LibTorch 2.10 and Python 3.11: one wheel works with all later versions of both.
DEFINES = [("TORCH_TARGET_VERSION", "0x020a000000000000")]
COMPILE = ["-std=c++20", "-O3", "-g0", "-fno-math-errno", "-fvisibility=hidden", "-Wall", "-Wno-psabi"]
SANITIZE = {
    "": [],
    "memory": [
        "-fsanitize=address,undefined",
        "-fno-sanitize-recover=undefined",
        "-fno-omit-frame-pointer",
        "-g",
        "-O1",
    ],
    "threads": ["-fsanitize=thread", "-DPSAL_STD_THREADS", "-g", "-O1"],
}

sanitize = SANITIZE[os.environ.get("PSAL_SANITIZE", "")]

setup(
    ext_modules=[
        CppExtension(
            "psal._C",
            sorted(str(path) for path in Path("csrc").rglob("*.cpp")),
            depends=sorted(str(path) for path in Path("csrc").rglob("*.h")),
            define_macros=DEFINES,
            extra_compile_args=COMPILE + sanitize,
            extra_link_args=sanitize,
            py_limited_api=True,
        )
    ],
    cmdclass={"build_ext": BuildExtension},
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
