"""Retention: garbage collection of artifacts and runs, and of old checkpoints."""
