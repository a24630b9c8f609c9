"""Retention: garbage collection, and retiring models as baselines."""
