"""Filters TFX's warnings that repeat for every input of every node."""

from __future__ import annotations

import logging

# It asks for no artifact by its properties, and nobody who reads the log could either.
_NOISE = frozenset(
    f"{query}.property_predicate is not supported."
    for query in ("ArtifactQuery", "ContextQuery")
)


def tfx_log_filter() -> None:
    """Leaves these lines out from now on, in this process."""
    logging.getLogger("absl").addFilter(_says_something)


def _says_something(record: logging.LogRecord) -> bool:
    # A message may be any object, which need not have a hash.
    return not (isinstance(record.msg, str) and record.msg in _NOISE)
