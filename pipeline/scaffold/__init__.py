"""Proposes a schema and a config for a data set (``sluice init``).

``find_examples`` finds the files, ``guess_splits`` their splits. ``sample`` reads
records, of which TFDV makes statistics. ``choose_label``, ``choose_features`` and
``infer_schema`` decide; ``propose`` puts it together; ``proposal_text`` formats it with
the reasons, for review.
"""
