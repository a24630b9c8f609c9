"""Which files are taken: spans, their versions, and when they are complete."""
