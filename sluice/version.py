"""The version, apart from what the nodes import: a release does not train again."""

__version__ = "0.1.0"
