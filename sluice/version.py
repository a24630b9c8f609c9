"""Version of the package, outside of what nodes import: a release does not retrain."""

__version__ = "0.1.0"
