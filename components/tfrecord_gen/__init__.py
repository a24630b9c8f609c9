"""Ingests TFRecord files into checked ``Examples`` and a quarantine.

``spans`` chooses the files, ``reading`` turns them into records and record errors,
``checking`` says what is wrong with a record or between files, and ``writing`` writes
shards and quarantine. ``ingest`` is all of it on plain paths; ``component``,
``driver`` and ``executor`` make a TFX node of it.
"""
