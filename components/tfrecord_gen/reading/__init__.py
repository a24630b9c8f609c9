"""TFRecord files as records and record errors; knows nothing of what a record holds."""
