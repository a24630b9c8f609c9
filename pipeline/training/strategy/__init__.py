"""How a training is distributed: which strategy, on which devices, in which batches.

``choice`` and ``batch`` import no TensorFlow. ``distribution`` makes what they say.
"""
