"""Generates a schema and a config from a data set.

Everything here is counted from records, without TensorFlow: ``summarize`` counts,
``infer_schema`` and ``propose`` decide, ``schema_text`` and ``config_text`` write it
down with the reasons. A proposal is where a review begins; nothing here is applied to a
reviewed schema by itself.
"""
