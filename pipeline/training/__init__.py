"""Training of a model, as TFX's Trainer runs it.

``preprocessing`` is the function of Transform. ``run_fn`` calls, in this order,
``input`` (datasets), ``build`` (model), ``compile`` (optimizer, loss, metrics), ``fit``
(with ``callbacks`` and ``checkpoint``) and ``export`` (SavedModel). ``models`` has the
built-in models.
"""
