"""Ingests TFRecord files into checked ``Examples`` and a quarantine.

``select_spans`` chooses the files (a ``Window``), ``scan`` and ``check_*`` find bad
records and inconsistent files, and ``ingest`` writes shards and quarantine, all on
plain paths; ``component``, ``driver`` and ``executor`` are the TFX node.
"""
