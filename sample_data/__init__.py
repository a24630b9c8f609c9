"""Real data sets that ship with the dependencies, as TFRecords of tf.Examples.

The configs, the demo, the tests and the benchmarks run on them, without a network. See
``sample_data.catalog`` for what there is and how to make it.
"""
