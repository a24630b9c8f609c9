"""Selects the baseline model that a candidate is compared with."""
