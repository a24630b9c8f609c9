"""What happens to a model once it is blessed: stored as a version, and asked.

``model_store`` keeps the versions that TensorFlow Serving watches;
``predictor`` asks one of them. Nothing here trains or judges a model.
"""
