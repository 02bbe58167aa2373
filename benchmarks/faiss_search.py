"""Nearest-neighbor search with faiss on whole patches, to compare psal with."""

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

FACTORY = "PCA32,IVF1024,Flat"
PROBES = 4
CHUNK_SIZE = 4096  # queries

Patches = NDArray[np.float32]


def patches(x: Tensor, patch_size: int) -> Patches:
    """All patches of a map ``(1, C, H, W)`` as rows ``(H·W, C·p²)``, with a replicated border."""
    border = patch_size // 2
    padded = F.pad(x, (border,) * 4, mode="replicate")
    rows: Patches = F.unfold(padded, patch_size)[0].T.contiguous().numpy()
    return rows


def build_and_search(query: Patches, key: Patches, neighbors: int, threads: int) -> NDArray[np.int64]:
    """Train and fill an index of the key patches, then search every query.

    Returns:
        Indices of the keys ``(n, k)``, best first.
    """
    import faiss  # here, so that the other groups can be measured without it

    faiss.omp_set_num_threads(threads)
    index: Any = faiss.index_factory(key.shape[1], FACTORY)
    faiss.extract_index_ivf(index).nprobe = PROBES
    index.train(key)
    index.add(key)
    found: NDArray[np.int64] = index.search(query, neighbors)[1]
    return found


def true_score(query: Patches, key: Patches, found: NDArray[np.int64]) -> Tensor:
    """Minus the squared distance of each query to its best match ``(n,)``; faiss compares 32 components only."""
    queries, keys, best = torch.from_numpy(query), torch.from_numpy(key), torch.from_numpy(found[:, 0].copy())
    chunks = zip(torch.split(queries, CHUNK_SIZE), torch.split(best, CHUNK_SIZE), strict=True)
    return torch.cat([-(rows - keys[index]).square().sum(1) for rows, index in chunks])
