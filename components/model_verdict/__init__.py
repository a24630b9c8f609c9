"""Decides whether a model may be pushed, with a reason for each check."""
