"""The ``RetrainGate`` node: decides whether a model is trained on the data of a run."""
