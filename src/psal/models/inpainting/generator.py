"""The inpainting network of Yu et al. 2018: a coarse fill, and its refinement with and without attention."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from psal import checks

STRIDE = 4  # pixels of the picture per pixel of the feature maps
DILATIONS = (2, 4, 8, 16)
WIDTH = 32  # channels of the first layer, in the paper


class Generator(nn.Module):
    """The two-stage network of "Generative Image Inpainting with Contextual Attention" (Yu et al. 2018).

    The coarse network fills the hole roughly. The refinement network sees the picture with that fill in two branches,
    one of dilated convolutions and one with attention, and decodes both together.

    Args:
        attention: any layer ``(query, key, value, key_mask) -> output`` on ``(B, 4 · width, H / 4, W / 4)`` maps, such
            as :class:`ContextualAttention` or :class:`psal.PatchAttention`. None leaves the attention branch out.
        width: channels of the first layer; the inner ones have up to four times as many.

    Raises:
        ValueError, TypeError: if the width is not an even positive int.

    >>> from psal import PatchAttention
    >>> network = Generator(PatchAttention(7, 3), width=8)
    >>> image, hole = torch.rand(1, 3, 32, 40) * 2 - 1, torch.zeros(1, 1, 32, 40, dtype=torch.bool)
    >>> hole[..., 8:16, 8:20] = True
    >>> coarse, refined = network(image, hole)
    >>> refined.shape
    torch.Size([1, 3, 32, 40])
    """

    def __init__(self, attention: nn.Module | None, width: int = WIDTH) -> None:
        super().__init__()
        checks.check_count("width", width, 2)
        if width % 2:
            raise ValueError(f"width must be even, got {width}")
        self.width = width
        self.coarse = CoarseNetwork(width)
        self.refinement = RefinementNetwork(attention, width)

    def forward(self, image: Tensor, hole: Tensor) -> tuple[Tensor, Tensor]:
        """Predict all pixels of a picture from those outside the hole.

        Args:
            image: ``(B, 3, H, W)`` in −1..1; H and W are multiples of 4. Values in the hole are ignored.
            hole: bool ``(B, 1, H, W)``, True in the hole.

        Returns:
            The pictures of the coarse and of the refinement network, each ``(B, 3, H, W)`` in −1..1.

        Raises:
            ValueError, TypeError: if the tensors are not as described.
        """
        checks.check_map("image", image)
        if image.ndim != 4 or image.shape[1] != 3 or image.shape[2] % STRIDE or image.shape[3] % STRIDE:
            raise ValueError(
                f"image must be (B, 3, H, W) with H and W multiples of {STRIDE}, got shape {tuple(image.shape)}"
            )
        checks.check_mask("hole", hole, image)
        known = image.masked_fill(hole, 0)
        coarse = self.coarse(_network_input(known, hole))
        refined = self.refinement(_network_input(torch.where(hole, coarse, known), hole), hole)
        return coarse, refined


class CoarseNetwork(nn.Module):
    """The first stage: an encoder to a quarter of the size, dilated convolutions, and a decoder."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.encoder = nn.Sequential(
            _convolution(5, width, kernel=5),
            _convolution(width, 2 * width, stride=2),
            _convolution(2 * width, 2 * width),
            _convolution(2 * width, 4 * width, stride=2),
            _convolution(4 * width, 4 * width),
            _convolution(4 * width, 4 * width),
        )
        self.dilated = _dilated(width)
        self.decoder = _decoder(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        """Map the input ``(B, 5, H, W)`` to a picture ``(B, 3, H, W)`` in −1..1."""
        out: Tensor = self.decoder(self.dilated(self.encoder(x)))
        return out.clamp(-1, 1)


class RefinementNetwork(nn.Module):
    """The second stage: a branch of dilated convolutions and one with attention, decoded together."""

    def __init__(self, attention: nn.Module | None, width: int) -> None:
        super().__init__()
        self.encoder = nn.Sequential(
            _convolution(5, width, kernel=5),
            _convolution(width, width, stride=2),
            _convolution(width, 2 * width),
            _convolution(2 * width, 2 * width, stride=2),
            _convolution(2 * width, 4 * width),
            _convolution(4 * width, 4 * width),
        )
        self.dilated = _dilated(width)
        self.attention_branch = None if attention is None else AttentionBranch(attention, width)
        self.decoder = _decoder(4 * width if attention is None else 8 * width, width)

    def forward(self, x: Tensor, hole: Tensor) -> Tensor:
        """Map the input ``(B, 5, H, W)`` and the hole ``(B, 1, H, W)`` to a picture ``(B, 3, H, W)`` in −1..1."""
        features = self.dilated(self.encoder(x))  # [B, 4 · width, H / 4, W / 4]
        if self.attention_branch is not None:
            features = torch.cat([features, self.attention_branch(x, hole)], 1)
        out: Tensor = self.decoder(features)
        return out.clamp(-1, 1)


class AttentionBranch(nn.Module):
    """An encoder whose features attend to themselves: those of the hole to those outside of it, and all others too."""

    def __init__(self, attention: nn.Module, width: int) -> None:
        super().__init__()
        self.encoder = nn.Sequential(
            _convolution(5, width, kernel=5),
            _convolution(width, width, stride=2),
            _convolution(width, 2 * width),
            _convolution(2 * width, 4 * width, stride=2),
            _convolution(4 * width, 4 * width),
            _convolution(4 * width, 4 * width, activation=nn.ReLU(inplace=True)),
        )
        self.attention = attention
        self.after = nn.Sequential(_convolution(4 * width, 4 * width), _convolution(4 * width, 4 * width))

    def forward(self, x: Tensor, hole: Tensor) -> Tensor:
        """Map the input ``(B, 5, H, W)`` and the hole ``(B, 1, H, W)`` to ``(B, 4 · width, H / 4, W / 4)``."""
        features = self.encoder(x)
        out: Tensor = self.after(self.attention(features, features, features, key_mask=known_features(hole)))
        return out


def known_features(hole: Tensor) -> Tensor:
    """Return which pixels ``(B, 1, H / 4, W / 4)`` of the feature maps have no hole in the 4 × 4 pixels they stand for.

    The network's authors look at one of these pixels, and miss thin holes between them.
    """
    return F.max_pool2d(hole.float(), STRIDE) == 0


def _network_input(image: Tensor, hole: Tensor) -> Tensor:
    """Join a picture, a map of ones, which tells the border of the picture from the padding, and the hole."""
    return torch.cat([image, torch.ones_like(image[:, :1]), hole.to(image.dtype)], 1)


def _convolution(
    channels: int, out: int, kernel: int = 3, stride: int = 1, dilation: int = 1, activation: nn.Module | None = None
) -> nn.Sequential:
    padding = dilation * (kernel // 2)
    return nn.Sequential(
        nn.Conv2d(channels, out, kernel, stride, padding, dilation), activation or nn.ELU(inplace=True)
    )


def _dilated(width: int) -> nn.Sequential:
    return nn.Sequential(*(_convolution(4 * width, 4 * width, dilation=dilation) for dilation in DILATIONS))


def _decoder(channels: int, width: int) -> nn.Sequential:
    """Features ``(B, channels, H / 4, W / 4)`` to a picture ``(B, 3, H, W)``, not limited to −1..1."""
    return nn.Sequential(
        _convolution(channels, 4 * width),
        _convolution(4 * width, 4 * width),
        nn.Upsample(scale_factor=2),
        _convolution(4 * width, 2 * width),
        _convolution(2 * width, 2 * width),
        nn.Upsample(scale_factor=2),
        _convolution(2 * width, width),
        _convolution(width, width // 2),
        nn.Conv2d(width // 2, 3, 3, padding=1),
    )
