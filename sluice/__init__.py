"""Sluice: from TFRecords to a served model, with gates that hold and explain.

This package holds the words that every other package shares. It imports nothing
of ours, and neither TensorFlow nor TFX.
"""
