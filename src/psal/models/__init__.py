"""Networks around the attention layer, as pure modules; :mod:`psal.models.weights` loads trained ones."""

from psal.models.colorizer import Colorizer

__all__ = ["Colorizer"]
