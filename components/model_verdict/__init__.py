"""Decides whether a model may be pushed, and always publishes why."""
