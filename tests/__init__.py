"""A package, since a library installs another one of this name."""
