"""Evaluates models with TFMA, each model once on the same data."""
