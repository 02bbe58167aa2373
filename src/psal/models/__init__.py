"""Networks around the attention layer: modules only."""

from psal.models.colorizer import Colorizer

__all__ = ["Colorizer"]
