"""Training step 1, input: batches of examples, transformed as they are read.

``training_input`` makes what ``model.fit`` takes. ``records`` counts and reads records,
and divides them over workers; ``examples`` and ``images`` transform and decode them, as
the exported model does. The order of an epoch is a function of seed and epoch alone, so
that a resumed training sees what an uninterrupted one sees.
"""
