"""Definition of a pipeline.

``config`` reads and validates it, ``graph`` builds it as a TFX pipeline, ``training``
is the code of Transform and Trainer, ``scaffold`` proposes a config for new data.
"""
