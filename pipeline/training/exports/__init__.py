"""Exports of the trained model without its preprocessing: TFLite, ``.keras``.

``export_fn`` rebuilds the model, and compares each export with the SavedModel.
"""
