"""Checks of a config before a run; ``before_run`` makes them, in order."""
