"""Ingests TFRecord files into checked ``Examples`` and a quarantine.

``spans`` selects the files, ``checking`` finds bad records and inconsistent files, and
``writing`` writes shards and quarantine. ``ingest`` combines them on plain paths;
``component``, ``driver`` and ``executor`` are the TFX node.
"""
