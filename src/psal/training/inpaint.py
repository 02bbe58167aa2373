"""Inpainting: fill random holes in the pictures of a folder, with two critics after the first steps."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch import Tensor, nn

from psal.data.draws import example_generator
from psal.data.image_folder import MissingDataError, list_pictures, load_square, to_picture
from psal.data.masks import KINDS, depth_of, random_hole
from psal.data.random_crops import RandomCrops
from psal.errors import UsageError
from psal.models.inpainting import Discriminators
from psal.models.inpainting.attentions import check_name
from psal.models.inpainting.generator import STRIDE
from psal.models.inpainting.losses import discounted_l1, gradient_penalty, known_l1, realness_gap
from psal.models.inpainting.weights import build_generator

# Weights of the losses, as in the configuration of generative-inpainting-pytorch, which the paper trained with.
COARSE_WEIGHT, HOLE_WEIGHT, KNOWN_WEIGHT = 1.2, 1.2, 1.2
ADVERSARIAL_WEIGHT, PENALTY_WEIGHT = 0.001, 10.0
MIN_SIZE, MIN_WINDOW = 32, 16
PREVIEW_ROWS = 3


@dataclass(frozen=True)
class InpaintSettings:
    """What is trained, and on what; the defaults are the paper's.

    Attributes:
        attention: name for :func:`psal.models.inpainting.attentions.build_inpainting_attention`.
        size: side of the square crops, in pixels.
        hole: side of the largest rectangular hole, and of the window that the local critic sees.
        masks: "rectangles", "free-form" or "both".
        width: channels of the network's first layer.
        critic_width: channels of the critics' first layers.
        adversarial_from: step from which the critics are trained and judge; before it, the loss is l1 alone.
        critic_steps: from then on, the network is trained in every ``critic_steps``-th step, the critics in all.

    Raises:
        UsageError: if a value is out of range.
    """

    attention: str = "psal3"
    size: int = 256
    hole: int = 128
    masks: str = "rectangles"
    width: int = 32
    critic_width: int = 64
    adversarial_from: int = 0
    critic_steps: int = 5

    def __post_init__(self) -> None:
        check_name(self.attention)
        if self.masks not in KINDS:
            raise UsageError(f"there are no masks named {self.masks!r}: choose from {', '.join(KINDS)}")
        if self.size < MIN_SIZE or self.size % STRIDE:
            raise UsageError(f"the size must be a multiple of {STRIDE} and at least {MIN_SIZE}, got {self.size}")
        if not MIN_WINDOW <= self.hole <= self.size // 2:
            raise UsageError(f"the hole must be {MIN_WINDOW} to {self.size // 2}, half of the size, got {self.hole}")
        if self.width < 2 or self.width % 2:
            raise UsageError(f"the width must be even and positive, got {self.width}")


class InpaintTask:
    """The inpainting network on random crops of the pictures in a folder, with random holes.

    Args:
        data: the folder; pictures in folders below it count too.
        settings: what is trained.
        seed: seed of the crops and holes.
        previews: folder of the pictures in previews; None for ``data``.

    Raises:
        psal.data.image_folder.MissingDataError: if a folder has no pictures.
    """

    name = "inpaint"
    betas = (0.5, 0.9)

    def __init__(self, data: Path, settings: InpaintSettings, seed: int, previews: Path | None = None) -> None:
        self._settings = settings
        self._seed = seed
        self._crops = RandomCrops(data, settings.size, seed)
        self._previewed, self._broken = _preview_examples(previews or data, settings)
        self.settings: dict[str, Any] = {**asdict(settings), "pictures": self._crops.fingerprint}

    def build(self) -> nn.Module:
        return build_generator(self._settings.attention, self._settings.width)

    def build_critic(self) -> nn.Module:
        return Critic(Discriminators(self._settings.size, self._settings.hole, self._settings.critic_width))

    def trains_critic(self, step: int) -> bool:
        return step >= self._settings.adversarial_from

    def trains_network(self, step: int) -> bool:
        since = step - self._settings.adversarial_from
        return since < 0 or since % self._settings.critic_steps == self._settings.critic_steps - 1

    def example(self, number: int) -> Sequence[Tensor]:
        """Return the picture in −1..1, the depth of the hole, and the top and left of the window on it."""
        generator = example_generator(self._seed, number)
        picture = self._crops.draw(generator)
        return _example(picture, self._settings, generator)

    def loss(self, model: nn.Module, example: Sequence[Tensor]) -> Tensor:
        truth, depth, _ = example
        coarse, refined = model(truth, depth > 0)
        return self._l1(coarse, refined, truth, depth)

    def adversarial_loss(self, model: nn.Module, critic: nn.Module, example: Sequence[Tensor]) -> Tensor:
        truth, depth, _ = example
        coarse, refined = model(truth, depth > 0)
        realness: Tensor = critic(self._seen(refined, example))
        return self._l1(coarse, refined, truth, depth) - ADVERSARIAL_WEIGHT * realness

    def critic_loss(self, critic: nn.Module, model: nn.Module, example: Sequence[Tensor]) -> Tensor:
        truth, depth, _ = example
        with torch.no_grad():
            _, refined = model(truth, depth > 0)
        loss: Tensor = critic(self._seen(refined, example), self._seen(truth, example))
        return loss

    def _l1(self, coarse: Tensor, refined: Tensor, truth: Tensor, depth: Tensor) -> Tensor:
        def summed(weight: float, image: Tensor) -> Tensor:
            inside = discounted_l1(image, truth, depth, self._settings.hole**2)
            return weight * (HOLE_WEIGHT * inside + KNOWN_WEIGHT * known_l1(image, truth, depth))

        return summed(COARSE_WEIGHT, coarse) + summed(1, refined)

    def _seen(self, image: Tensor, example: Sequence[Tensor]) -> list[Tensor]:
        """Return what the critics see of a filled picture: all of it, and the window on the hole."""
        truth, depth, corner = example
        filled = torch.where(depth > 0, image.to(truth.dtype), truth)
        top, left = corner[0].tolist()
        side = self._settings.hole
        return [filled, filled[..., top : top + side, left : left + side]]

    def look(self, model: nn.Module) -> Image.Image | None:
        if not self._previewed:
            return None
        rows, weight = [], next(model.parameters())
        for truth, depth, _ in self._previewed:
            hole = depth > 0
            coarse, refined = (x.float().cpu() for x in model(truth.to(weight), hole.to(weight.device)))
            filled = (torch.where(hole, x, truth) for x in (coarse, refined))
            rows.append(torch.cat([truth.masked_fill(hole, 1), *filled, truth], 3))
        return to_picture((torch.cat(rows, 2)[0] + 1) / 2)

    def complaints(self) -> list[str]:
        return [*self._broken, *self._crops.broken.values()]


class Critic(nn.Module):
    """The discriminators and their loss. It is computed in ``forward``, where gradients of the scores may be taken."""

    def __init__(self, discriminators: Discriminators) -> None:
        super().__init__()
        self.discriminators = discriminators

    def forward(self, fake: list[Tensor], real: list[Tensor] | None = None) -> Tensor:
        """Judge what the critics see of filled pictures.

        Args:
            fake: filled pictures, one for each critic.
            real: the same of real pictures, for the loss.

        Returns:
            The critics' loss, or without ``real`` how real the filled pictures look; 0-d.
        """
        if real is None:
            realness: Tensor = self.discriminators(*fake).mean(0).sum()
            return realness
        scores = self.discriminators(*(torch.cat(pair) for pair in zip(fake, real, strict=True)))
        penalty = gradient_penalty(self.discriminators, real, fake)
        return realness_gap(*scores.chunk(2)) + PENALTY_WEIGHT * penalty


def _example(picture: Tensor, settings: InpaintSettings, generator: torch.Generator) -> list[Tensor]:
    hole = random_hole(settings.masks, settings.size, settings.hole, generator)
    return [picture[None] * 2 - 1, depth_of(hole.mask)[None, None], torch.tensor([[hole.top, hole.left]])]


def _preview_examples(folder: Path, settings: InpaintSettings) -> tuple[list[list[Tensor]], list[str]]:
    """Examples of the first readable pictures; also returns an error message for each unreadable file before them."""
    found: list[list[Tensor]] = []
    broken: list[str] = []
    generator = torch.Generator().manual_seed(0)
    for path in list_pictures(folder):
        if len(found) == PREVIEW_ROWS:
            break
        try:
            picture = load_square(path, settings.size)
        except MissingDataError as error:
            broken.append(str(error))
            continue
        found.append(_example(picture, settings, generator))
    return found, broken
