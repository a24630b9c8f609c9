"""Rehearsal of compiled pipelines on this machine, with a folder for buckets."""
