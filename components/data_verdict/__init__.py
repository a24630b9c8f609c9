"""Decides whether the data may be used for training, with a reason for each check."""
