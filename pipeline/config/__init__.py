"""Config of a pipeline: read, merged, validated, printed.

``config`` and the section modules (``data``, ``features``, ``evaluate``) define the
keys. ``load`` reads a config, which ``find`` locates, and merges profile and ``--set``.
``validate`` and
``validate_*`` check it against the schema, ``metrics`` and itself; ``problems`` formats
the errors. ``resolve_features`` derives the ``feature_set`` that nodes use.
``serialize`` writes a config, ``reference`` generates ``docs/config.md``.
"""
