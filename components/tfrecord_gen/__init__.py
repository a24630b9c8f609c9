"""Intake of TFRecord files: checked records in, `Examples` and a quarantine out."""
