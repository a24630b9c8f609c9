"""Publishes a blessed model into the model store."""
