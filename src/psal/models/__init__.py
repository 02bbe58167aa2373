"""Networks around the attention layer, as pure modules; modules named ``weights`` load trained ones."""

from psal.models.colorizer import Colorizer
from psal.models.csnln import CSNLN

__all__ = ["CSNLN", "Colorizer"]
