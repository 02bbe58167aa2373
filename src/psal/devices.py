"""The device that an edit runs on, by its name."""

import torch

from psal.errors import UsageError

EXPECTED = "device must be 'auto', 'cpu', 'cuda' or one of several such as 'cuda:1'"


def choose_device(device: str | torch.device) -> torch.device:
    """Return the device of a name.

    Args:
        device: "cpu"; "cuda", a CUDA or ROCm device, or "cuda:1" and so on; "auto" takes "cuda" if torch finds one,
            else "cpu". There are no kernels for others.

    Raises:
        TypeError: if it is neither a word nor a ``torch.device``.
        UsageError: if it is another kind of device, or is not there.

    >>> choose_device("cpu")
    device(type='cpu')
    """
    if not isinstance(device, str | torch.device):
        raise TypeError(f"{EXPECTED}, got {device!r}")
    name = str(device)
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(name)
    except RuntimeError:  # torch does not know the word
        raise UsageError(f"{EXPECTED}, got {name!r}") from None
    if chosen.type == "cpu":
        return torch.device("cpu")
    if chosen.type != "cuda":
        raise UsageError(f"{EXPECTED}, got {name!r}")
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if (chosen.index or 0) >= count:
        raise UsageError(f"there is no device {name!r}: torch finds {count or 'no'} CUDA device{'s' * (count > 1)}")
    return chosen
