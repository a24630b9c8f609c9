"""Finds what compiles and then fails in the service, before it is submitted.

``lint_config`` reads the config alone, in milliseconds; ``lint_pipeline`` the TFX
pipeline, in the process that compiles it; ``lint_spec`` what was compiled.
"""
