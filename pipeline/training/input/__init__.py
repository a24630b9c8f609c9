"""Training step 1, input: batches of the transformed examples.

``training_input`` makes what ``model.fit`` takes. ``shards`` counts and reads records,
``plan`` divides them over workers and steps, ``batches`` orders and caches them,
``examples`` and ``images`` decode them; the exported model decodes alike. The order of
an epoch is a function of seed and epoch alone, so that a resumed training sees what an
uninterrupted one sees.
"""
