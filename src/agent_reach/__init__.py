"""Run Python that you did not write under a declared contract."""

__version__ = "0.1.0"
