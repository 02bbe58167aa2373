"""The paper's own figures, for comparison (Cherel et al., arXiv:2202.03163)."""

MEMORY_SIZES = (64, 128, 256, 512)
MEMORY_GB = {  # Table 1, forward
    "Full attention": (0.30, 4.98, 15.26, 250.04),
    "Local attention": (0.19, 0.64, 3.23, 13.12),
    "Linear attention": (0.11, 0.46, 1.85, 7.47),
    "Performer": (0.71, 2.84, 11.55, 17.68),
    "Reformer": (0.47, 1.86, 7.42, 21.47),
    "PSAL 3": (0.01, 0.01, 0.04, 0.18),
    "PSAL Aggreg.": (0.05, 0.19, 0.74, 2.95),
}

RECONSTRUCTION_SIZE = 512
RECONSTRUCTION_LOSS = {  # Table 2, at 512²
    "full-stride10": 0.0022, "local": 0.0119, "linear": 0.0576, "psal3": 0.0011, "psal-aggregate": 0.0008,
}  # fmt: skip
RECONSTRUCTION_BY_SIZE = {  # Table 3, by size and stride of full attention: loss of full attention, of PSAL 3
    (64, 1): (0.0048, 0.0048),
    (128, 2): (0.0038, 0.0029),
    (256, 5): (0.0031, 0.0017),
    (512, 10): (0.0022, 0.0011),
}

COLORIZATION_LOSS: dict[str, dict[tuple[str, str], float]] = {  # Tables 4, 5, 8, by attention in training and test
    "neighbors": {
        ("psal1", "psal1"): 0.00832,
        ("psal3", "psal3"): 0.00228,
        ("psal7", "psal7"): 0.00234,
        ("psal15", "psal15"): 0.00237,
        ("psal31", "psal31"): 0.00232,
        ("psal-aggregate", "psal-aggregate"): 0.00194,
    },
    "similarity": {
        ("full-materialized", "full-materialized"): 0.0024,
        ("full-dot", "full-dot"): 0.0064,
    },
    "cost": {},
    "swap": {
        ("psal1", "psal1"): 0.0083,
        ("psal-aggregate", "psal-aggregate"): 0.0019,
        ("psal-aggregate", "psal1"): 0.0023,
        ("psal3", "psal3"): 0.0023,
        ("psal3", "psal1"): 0.0023,
        ("full-materialized", "full-materialized"): 0.0024,
        ("full-materialized", "psal1"): 0.0024,
        ("local", "local"): 0.0032,
        ("local", "psal1"): 0.0035,
    },
}

SUPER_RESOLUTION_PSNR = {  # Table 7, Urban100, by scale; the number of neighbors of PSAL is not said
    "exact": {2: 33.383, 3: 29.123, 4: 27.288},
    "psal3": {2: 33.375, 3: 29.112, 4: 27.184},
}

INPAINTING = {  # Table 6, on Places2
    "Contextual attention": {"l1": 11.8, "l2": 3.6, "psnr": 16.4, "tv": 6.6, "ssim": 53.7},
    "PSAL 3": {"l1": 11.6, "l2": 3.6, "psnr": 16.6, "tv": 6.9, "ssim": 54.1},
}
