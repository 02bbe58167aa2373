"""The ops as Triton kernels, for CUDA and ROCm devices. Only :mod:`.register` may be imported where Triton is missing.

All kernels see three spatial axes; missing ones have size 1 in front. A program computes a tile of neighboring pixels,
one per lane, and no two programs write the same element: see docs/gpu.md.

| file | contents |
|---|---|
| `register.py` | what the dispatcher calls for each op |
| `layout.py` | tensors as the kernels read them: padded, channels last |
| `tiles.py`, `random.py`, `best_k.py`, `patch_sum.py` | device functions that several kernels share |
| `search.py`, `seeds.py`, `score.py`, `attend.py`, `links.py` | kernels, each with the function that launches it |
"""
