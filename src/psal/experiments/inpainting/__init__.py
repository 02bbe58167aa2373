"""Table 6 of the paper: the inpainting network with contextual attention and with PSAL, and its cost on large maps."""
