"""Contents of the documents in ``record/``, one module per kind."""
