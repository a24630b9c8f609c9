"""Chooses the model that a new one is compared with."""
