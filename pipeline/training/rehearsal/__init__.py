"""Rehearsal of a training without its accelerator.

The train and eval step of a config are traced, and for a TPU compiled by XLA, on this
machine's CPU: no data, no workspace and no accelerator is needed. ``rehearse`` is the
entry; a ``Rehearsal`` is what it returns.
"""
