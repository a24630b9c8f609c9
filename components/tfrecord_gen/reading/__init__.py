"""TFRecord files as records and faults; knows nothing of what a record holds."""
