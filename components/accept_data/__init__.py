"""Writes down which data was accepted, so that the next can be compared with it."""
