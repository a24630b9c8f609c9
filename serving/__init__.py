"""Model store and prediction: versions of a blessed model.

``model_store`` keeps the versions that TensorFlow Serving watches;
``predictor`` asks one of them. Nothing here trains or judges a model.
"""
