"""Reads ML Metadata without TFX: artifacts, lineage, served models, its SQLite file."""
