"""Intake of TFRecord files: checked records in, ``Examples`` and a quarantine out.

``spans`` says which files are taken, ``reading`` turns them into records and faults,
``checking`` says what is wrong with a record or between files, and ``taking`` writes
shards and quarantine. ``ingest`` is all of it on plain paths; ``component``,
``driver`` and ``executor`` make a TFX node of it.
"""
