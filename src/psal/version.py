"""The version, in a file that setuptools reads without importing torch."""

__version__ = "0.1.0"
