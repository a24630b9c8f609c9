"""The reviewed schema of a pipeline: shown, inferred, compared with data, changed."""
