"""Exports of the trained model without its preprocessing: TFLite, TF.js, ``.keras``.

``export_fn`` rebuilds the model, and compares each export with the SavedModel.
"""
