"""Decides whether the data may be trained on, and always publishes why."""
