"""Evaluates models with TFMA, with two metrics of our own."""
