"""Proposes a schema and a config for a data set (``sluice init``), without TensorFlow.

``find_examples`` finds the files, ``guess_splits`` their splits. ``sample`` reads
records, ``summarize`` counts their features, ``semantic_type`` interprets the counts.
``choose_label``, ``choose_features`` and ``infer_schema`` decide; ``propose`` puts it
together. ``config_text`` and ``schema_text`` format the proposal with the reasons, for
review; ``write_proposal`` writes the files.
"""
