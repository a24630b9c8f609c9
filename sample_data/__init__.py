"""Data sets, written as TFRecords of tf.Examples.

Configs, demo, tests and benchmarks use those that ship with the dependencies. See
``sample_data.catalog``.
"""
