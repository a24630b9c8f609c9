"""Beam: its cache of side inputs."""

from __future__ import annotations


def skip_sizes_in_cache() -> None:
    """Counts each side input in Beam's cache as 1 kB instead of measuring it.

    Why: ``objsize`` first walks the globals of all modules. In Beam's in-process runner
    the values are in memory anyway.
    Upstream: ``get_deep_size`` in apache_beam/runners/worker/statecache.py.
    Checked with: Beam 2.62 and 2.76.
    Without it: 20 ms for each side input with TensorFlow imported, an eighth of an
    evaluation. Where there is no such function, nothing is changed.
    """
    from apache_beam.runners.worker import statecache

    if hasattr(statecache, "get_deep_size"):
        statecache.get_deep_size = lambda *values: 1024
