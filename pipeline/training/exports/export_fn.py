"""``export_fn`` of the component ``Exports``: exports a model and compares.

The SavedModel is the reference: it predicts examples of the eval split as a client
sends them. An export gets what the SavedModel's own ``transform_features`` makes of the
same examples. Examples are predicted one by one, as an app does.
"""

from __future__ import annotations

import json
import time
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_transform as tft

from components.exports.judge import Comparison
from components.exports.settings import Export
from pipeline.config.features import FeatureSet, identifiers
from pipeline.config.train import Train
from pipeline.config.tune import with_values
from pipeline.training.build import build_model, model_inputs
from pipeline.training.export import WEIGHTS_FILE
from pipeline.training.exports.signature import SIGNATURE_FILE, describe
from pipeline.training.exports.tfjs import write_tfjs
from pipeline.training.exports.tflite import Rows, load_tflite, one_by_one, write_tflite
from pipeline.training.input.images import decode_images
from pipeline.training.keras_of import keras_of
from pipeline.training.models.published_weights import (
    load_weights,
    refresh_normalization,
)
from pipeline.training.strategy.distribution import Distribution
from sluice import progress
from sluice.errors import NodeError
from sluice.metrics import THRESHOLD
from sluice.model_facts import read_facts
from sluice.patches.tensorflow import exclude_keras_from_autograph
from sluice.secrets import resolve
from sluice.splits import SPLIT_PREFIX
from sluice.storage import atomic, digest

EXAMPLES = 500
_SHUFFLED = 4 * EXAMPLES
_SEED = 17


def export_fn(
    exports: Sequence[Export],
    config: Mapping[str, Any],
    *,
    saved_model: Path,
    model_run: Path,
    transform_graph: Path,
    examples: str,
    target: Path,
) -> list[Comparison]:
    """Writes each export to a folder of its name, and compares it.

    Args:
      exports: the exports.
      config: what ``run_fn`` takes: ``feature_set``, ``own_preprocessing``, ``model``,
        ``model_params``.
      saved_model: the reference.
      model_run: with the weights.
      transform_graph: of the Transform that the model was trained with.
      examples: address of raw examples, with the splits train and eval.
      target: folder of the exports.

    Returns:
      The comparisons of the SavedModel itself and of each export.

    Raises:
      NodeError: an export cannot be made.
    """
    exclude_keras_from_autograph()
    features = FeatureSet.model_validate(config["feature_set"])
    transform = tft.TFTransformOutput(str(transform_graph))
    saved = tf.saved_model.load(str(saved_model))
    serve, output = saved.signatures["serving_default"], features.label.prediction_key
    model, used = rebuild(config, transform, model_run / WEIGHTS_FILE)

    def inputs_of(records: list[bytes]) -> Rows:
        """Returns the inputs of the model, by their names in exports."""
        transformed = call(saved.signatures["transform_features"], records)
        transformed = decode_images(transformed, features.images)
        return {key: transformed[name].numpy() for name, key in used.items()}

    records = read(examples, "eval")
    inputs = inputs_of(records)
    reference, latency_ms = _timed(
        lambda record: call(serve, [record])[output], records
    )
    largest = float(np.abs(reference).max())
    threshold = read_facts(saved_model)["threshold"]

    def compare(
        name: str, path: Path, latency_ms: float | None, predictions: np.ndarray
    ) -> Comparison:
        size_bytes = sum(entry.size_bytes for entry in digest.files_below(path))
        difference = float(np.abs(predictions - reference).max())
        same = agreement(features, predictions, reference, threshold)
        return Comparison(name, size_bytes, latency_ms, difference, largest, same)

    comparisons = [compare("saved_model", saved_model, latency_ms, reference)]
    own = config["own_preprocessing"]
    raw_spec = transform.raw_feature_spec()
    about = describe(features, used, raw_spec, records, inputs, own_preprocessing=own)
    if len(features.label.class_names) == 2:
        about["threshold"] = threshold  # Of the second class, inclusive.
    for export in exports:
        progress.report(line=f"exporting {export.name}")
        folder = target / export.name
        folder.mkdir(parents=True)
        latency, predictions = None, None
        if export.format == "tfjs":
            # Not timed: what predicts here is not what predicts in a browser.
            predictions = write_tfjs(model, folder, inputs)
        elif export.format == "tflite":
            path = folder / "model.tflite"
            is_int8 = export.quantize == "int8"
            trained = inputs_of(read(examples, "train")) if is_int8 else inputs
            write_tflite(model, path, output, export.quantize, trained)
            predictions, latency = _timed(load_tflite(path), [*one_by_one(inputs)])
        else:
            loaded = tf.function(_write_keras(model, folder / "model.keras"))
            batches = [[*rows.values()] for rows in one_by_one(inputs)]
            predictions, latency = _timed(loaded, batches)
        comparisons.append(compare(export.name, folder, latency, predictions))
        atomic.write_json(folder / SIGNATURE_FILE, about)
    return comparisons


def rebuild(
    config: Mapping[str, Any], transform: Any, weights: Path
) -> tuple[Any, dict[str, str]]:
    """Returns the trained model and its inputs, see ``with_listed_inputs``.

    Args:
      config: as ``run_fn`` takes it: ``feature_set``, ``model``, ``model_params``; and
        ``tuned``, the values of a Tuner, if there was one.
      transform: the ``tft.TFTransformOutput`` that it was trained with.
      weights: file of its weights.

    Raises:
      NodeError: it is a subclass of ``Model``, which has only code.
    """
    inputs = model_inputs(FeatureSet.model_validate(config["feature_set"]), transform)
    here = Distribution(tf.distribute.get_strategy(), "one_device", "", 1)
    # All values that were tuned; those of the training are of no use here.
    train, tuned = Train.model_construct(), config.get("tuned", {})
    _, params = with_values(train, config["model_params"], tuned)
    model = build_model(config["model"], resolve(params), inputs, here)
    load_weights(model, weights)
    refresh_normalization(model)
    return with_listed_inputs(model, [*inputs.shapes])


def with_listed_inputs(model: Any, features: list[str]) -> tuple[Any, dict[str, str]]:
    """Returns a model with a list of inputs, as TF.js loads no other.

    Also the transformed features that it takes, in order, and by these their names in
    exports.

    Args:
      model: takes a dict of features, or tensors with their names.
      features: transformed names of all.

    Raises:
      NodeError: it is a subclass of ``Model``.
    """
    if not getattr(model, "inputs", None):
        raise NodeError(
            "the model is a subclass of keras.Model: only those of layers are exported",
            where="export",
            hint="return Model(inputs, outputs), with yours as a layer",
        )
    by_feature = model.input if isinstance(model.input, dict) else None
    tensors = by_feature or {tensor.name: tensor for tensor in model.inputs}
    used = {
        name: key
        for name, key in identifiers(features).items()
        if name in tensors or key in tensors
    }
    inputs = [tensors.get(name, tensors.get(key)) for name, key in used.items()]
    return keras_of(model).Model(inputs, model.outputs[0]), used


def agreement(
    features: FeatureSet,
    predictions: np.ndarray,
    reference: np.ndarray,
    threshold: float = THRESHOLD,
) -> float | None:
    """Returns the share of examples with the same class; None of a regression."""
    if features.label.task == "regression":
        return None
    if features.label.task == "multi_label" or reference.shape[1] == 1:
        same = ((predictions >= threshold) == (reference >= threshold)).all(axis=1)
    else:
        same = predictions.argmax(axis=1) == reference.argmax(axis=1)
    return float(same.mean())


def call(signature: Any, records: list[bytes]) -> dict[str, tf.Tensor]:
    """Returns the outputs of a signature of serialized examples."""
    (name,) = signature.structured_input_signature[1]
    return signature(**{name: tf.constant(records)})


def read(examples: str, split: str) -> list[bytes]:
    """Returns examples of a split, from all its files; the same ones each time."""
    files = sorted(tf.io.gfile.glob(f"{examples}/{SPLIT_PREFIX}{split}/*"))
    dataset = tf.data.Dataset.from_tensor_slices(files).interleave(
        lambda file: tf.data.TFRecordDataset(file, "GZIP"), cycle_length=8
    )
    records = [*dataset.shuffle(_SHUFFLED, _SEED).take(EXAMPLES).as_numpy_iterator()]
    if not records:
        raise NodeError(f"there is no example of {split!r} to compare", where=examples)
    return records


def _write_keras(model: Any, path: Path) -> Any:
    """Writes a ``.keras`` file and returns the model that it holds.

    Its dates are left out: equal models are equal files, of which one is pushed.
    """
    dated = path.with_suffix(".dated.keras")
    model.save(dated)
    with zipfile.ZipFile(dated) as source, zipfile.ZipFile(path, "w") as target:
        for name in source.namelist():
            content = source.read(name)
            if name == "metadata.json":
                content = json.dumps({**json.loads(content), "date_saved": ""}).encode()
            target.writestr(zipfile.ZipInfo(name), content)
    dated.unlink()
    try:
        return keras_of(model).models.load_model(path, compile=False)
    except Exception as error:  # Keras and the user's layers may raise anything.
        raise NodeError(
            f"the .keras file cannot be loaded: {' '.join(str(error).split())[:300]}",
            where="export",
            hint="layers of your own need get_config and register_keras_serializable",
        ) from error


def _timed(
    run: Callable[[Any], Any], examples: Sequence[Any]
) -> tuple[np.ndarray, float]:
    """Returns predictions ``[N, ...]`` of one example at a time, and the mean ms."""
    run(examples[0])  # Traces, and allocates.
    begin = time.perf_counter()
    predictions = [run(example) for example in examples]
    elapsed_ms = (time.perf_counter() - begin) * 1000
    return np.concatenate(predictions), elapsed_ms / len(examples)
