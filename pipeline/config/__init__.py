"""Config of a pipeline: read, merged, validated, printed.

``config`` and the section modules (``data``, ``features``, ``evaluate``) define the
keys. ``load`` reads a config, which ``find`` locates, and merges profile and ``--set``.
``validate`` checks it against the schema and the project's files, and
``resolve_features`` fills in features and classes; ``problems`` formats the errors.
``serialize`` writes a config, ``reference`` generates ``docs/config.md``.
"""
