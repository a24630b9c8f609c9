"""Vertex AI Pipelines."""
