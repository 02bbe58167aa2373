"""The inpainting network of Yu et al. 2018 with its attention as an argument, its critics and its losses."""

from psal.models.inpainting.contextual_attention import ContextualAttention
from psal.models.inpainting.discriminators import Discriminators
from psal.models.inpainting.generator import Generator

__all__ = ["ContextualAttention", "Discriminators", "Generator"]
