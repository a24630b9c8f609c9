"""Filters TFX's warnings that repeat for every input of every node."""

from __future__ import annotations

import logging

# TFX itself uses no property predicate.
_NOISE = frozenset(
    f"{query}.property_predicate is not supported."
    for query in ("ArtifactQuery", "ContextQuery")
)


def tfx_log_filter() -> None:
    """Installs the filter in this process."""
    logging.getLogger("absl").addFilter(_is_useful)


def _is_useful(record: logging.LogRecord) -> bool:
    # A message may be any object, which need not have a hash.
    return not (isinstance(record.msg, str) and record.msg in _NOISE)
