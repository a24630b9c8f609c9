"""Runs a pipeline on this machine, each node in a process of its own.

``scheduler`` decides which node runs when, and never imports TFX. ``nursery`` starts
processes by way of ``zygote``, which has imported TFX once. ``prepare_job`` draws the
graph and ``node_job`` runs one node, each in such a process. ``record_run`` writes what
happened, and ``local_runner`` is all of it for a pipeline of somebody else.
"""
