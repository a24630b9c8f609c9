"""Converts a Keras file to a TF.js layers model, and predicts with the result.

It runs in the environment of ``requirements/tfjs.txt``, which has nothing of Sluice:
``python tfjs_converter.py MODEL.h5 FOLDER INPUTS.npz PREDICTIONS.npy``.
"""

from __future__ import annotations

import os
import sys
from types import ModuleType

import numpy as np


def main(source: str, folder: str, inputs: str, predictions: str) -> None:
    """Writes ``model.json`` and weights to a folder, and the predictions to a file."""
    os.environ["TF_USE_LEGACY_KERAS"] = "1"
    # Imported by TF.js' converter of SavedModels, but it has no wheel for Python 3.12.
    sys.modules["tensorflow_decision_forests"] = ModuleType("unused")
    import h5py
    import tf_keras
    from tensorflowjs.converters import load_keras_model, save_keras_model

    with h5py.File(source, "r+") as file:
        config = file.attrs["model_config"]
        config = config.decode() if isinstance(config, bytes) else config
        # An argument of inputs that this Keras does not know yet, with its default.
        file.attrs["model_config"] = config.replace(', "optional": false', "")
    save_keras_model(tf_keras.models.load_model(source, compile=False), folder)
    model = load_keras_model(os.path.join(folder, "model.json"))
    with np.load(inputs) as given:
        np.save(predictions, model.predict([given[name] for name in given.files]))


if __name__ == "__main__":
    main(*sys.argv[1:])
