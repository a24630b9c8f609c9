"""Selects input files: spans, versions, and when a span is complete."""
