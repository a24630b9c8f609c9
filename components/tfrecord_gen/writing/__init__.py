"""Writes shards and quarantine in forked worker processes."""
