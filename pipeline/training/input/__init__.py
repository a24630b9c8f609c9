"""Training step 1, input: batches of the transformed examples.

``training_input`` makes the datasets of train and eval from ``shards`` (which files,
how many records, in what order), ``examples`` (parsing and decoding), and ``images``,
which the exported model shares. The order of an epoch is a function of seed and epoch
alone, so that a resumed training sees what an uninterrupted one sees.
"""
