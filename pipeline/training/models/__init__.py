"""The models that come with Sluice, and how one is found by name.

A model is built by ``build_model(inputs: ModelInputs, params: dict) -> tf.keras.Model``
from a dict of transformed features to one output: class probabilities ``[batch,
classes]``, or for two classes the probability ``[batch, 1]`` of the second one.
"""
