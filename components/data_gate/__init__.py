"""Blocks the pipeline when the data verdict has not passed."""
