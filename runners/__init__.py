"""Runs pipelines: command line, operations and engines."""
