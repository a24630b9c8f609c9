"""Reads and repairs ML Metadata without TFX: status, lineage, the SQLite file."""
