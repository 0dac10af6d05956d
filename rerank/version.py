"""The version of this program, which signatures, provenance and kept files name."""

__version__ = "0.1.0"
