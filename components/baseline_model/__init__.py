"""Selects the baseline model: the latest blessed one, neither retired nor missing."""
