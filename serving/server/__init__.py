"""Server of pushed models that speaks TensorFlow Serving's REST and gRPC.

``core.py`` answers requests for the models of ``models.py``; ``rest.py`` and
``grpc_service.py`` translate to it, and ``process.py`` is the process around them. A
process of ``python -m serving.server`` imports TensorFlow, and nothing of TFX.
"""
