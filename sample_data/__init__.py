"""Real data sets that ship with the dependencies, as TFRecords of tf.Examples.

Configs, demo, tests and benchmarks use them, without a network. See
``sample_data.catalog``.
"""
