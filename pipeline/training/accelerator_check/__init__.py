"""Accelerator check: whether a TPU or a GPU would take a training, without having one.

The train and eval step of a config are traced, and for a TPU compiled by XLA, on this
machine's CPU: no data, no workspace and no accelerator is needed.
"""
