"""Proposes a schema and a config for a data set (``sluice init``).

``find_splits`` finds the files and their splits. ``sample`` reads records and infers a
schema from TFDV's statistics, ``choose`` decides on label and features; ``propose``
formats it with the reasons, for review.
"""
