"""Training step 5, export: a SavedModel that takes raw features, without the label.

Signatures:
  serving_default: ``examples`` string ``[N]``, serialized tf.Examples. To an input of
    that name TFMA gives a feature of that name: if the schema has one, the input is
    ``serialized_examples``.
  predict_values: one ``[N]`` tensor per raw feature, for clients without protos; for a
    vector ``[N, ...]`` with the schema's shape, or ``[N, maximum number of values]`` if
    the number varies. An image is its encoded bytes. A missing value is NaN, the
    smallest int64, or "", as in examples. For names see
    ``pipeline.config.features.identifiers``.
  transform_features: the input of ``serving_default``. Returns the transformed
    features and the label's class id, -1 without a label. For TFMA.

The first two return ``probabilities`` float32 ``[N, classes]`` (two classes, one of
which is right: ``[N, 1]``, of the second) and ``label`` string ``[N, 1]``, of several
labels the classes with at least 0.5, joined by a comma: TFX's BulkInferrer cannot read
strings of one dimension; of two classes it is the second from the threshold on. Of a
regression they return ``prediction`` float32 ``[N, targets]``. Task, classes, targets
and threshold are also in ``assets.extra/classes.json``, and of each raw feature its
input of ``predict_values``, whether parsing fails without it, and whether the schema
has it in every record;
``assets.extra/features.json`` is the ``FeatureSet``.

A ``tf.Module`` has the model's variables and tables as attributes, but not the Keras
model: Keras would serialize it by tracing every layer again, which fails for a user's
``call`` with Python control flow (seen with tf_keras 2.16).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from pipeline.config.features import FeatureSet, identifiers
from pipeline.config.label import ThresholdRule
from pipeline.training.input.examples import raw_spec
from pipeline.training.input.images import decode_images
from pipeline.training.keras_of import as_tf, by_name, layers_in
from pipeline.training.preprocessing import MISSING, is_value
from pipeline.training.threshold import choose_threshold
from schemas.loader import has_one_value
from sluice import progress
from sluice.metrics import THRESHOLD
from sluice.model_facts import CLASSES_FILE
from sluice.storage import atomic
from sluice.storage.local_copy import local_output

FEATURES_FILE = "assets.extra/features.json"
HISTORY_FILE = "history.json"
WEIGHTS_FILE = "model.weights.h5"
_BATCH_SIZE = 256


def export_model(
    model: Any,
    directory: str,
    feature_set: FeatureSet,
    tf_transform_output: Any,
    *,
    all_raw_features: bool = False,
    eval_files: Sequence[str] = (),
) -> None:
    """Writes the SavedModel, and chooses its threshold if the label has a rule for it.

    Args:
      model: the trained model.
      directory: path or address of the SavedModel; must not exist.
      feature_set: the features and the label.
      tf_transform_output: of the Transform that the model was trained with.
      all_raw_features: whether the signatures take every feature of the schema but the
        label, as the user's preprocessing may need any; otherwise the config's.
      eval_files: patterns of the examples on which a threshold is chosen.
    """
    servable = ServableModel(model, tf_transform_output, feature_set, all_raw_features)
    signatures, label = servable.signatures(), feature_set.label
    threshold = label.threshold
    if isinstance(threshold, ThresholdRule):
        spec = tf_transform_output.raw_feature_spec()
        predicted = _predicted(signatures, feature_set, spec, eval_files)
        threshold = choose_threshold(threshold, *predicted)
        progress.report(line=f"threshold of {label.positive!r}: {threshold}")
    servable.threshold.assign(threshold)
    with local_output(directory) as folder:
        tf.saved_model.save(servable, str(folder), signatures=signatures)
        classes = folder / CLASSES_FILE
        classes.parent.mkdir(exist_ok=True)
        about: dict[str, Any] = {"task": label.task, "classes": label.class_names}
        if label.targets:
            about["targets"] = label.targets
        if len(label.class_names) == 2:
            about["threshold"] = threshold
        atomic.write_json(classes, {**about, "features": servable.features()})
        atomic.write_json(folder / FEATURES_FILE, feature_set.model_dump(mode="json"))


def _predicted(
    signatures: Mapping[str, Any],
    feature_set: FeatureSet,
    raw_spec: Mapping[str, Any],
    patterns: Sequence[str],
) -> tuple[np.ndarray, ...]:
    """Returns whether each example is positive, its probability, and its weight."""
    label, weight = feature_set.label, feature_set.sample_weight
    files = sorted({file for glob in patterns for file in tf.io.gfile.glob(glob)})
    batches = []
    for records in tf.data.TFRecordDataset(files, "GZIP").batch(_BATCH_SIZE):
        labels = signatures["transform_features"](records)[label.key]
        predicted = signatures["serving_default"](records)[label.prediction_key]
        weights = tf.ones_like(labels)
        if weight:
            weights = tf.io.parse_example(records, {weight: raw_spec[weight]})[weight]
        batches.append((labels == 1, predicted, weights))
    return tuple(np.concatenate(x).ravel() for x in zip(*batches, strict=True))


def write_model_run(
    model: Any, history: Mapping[str, Sequence[float]], directory: str
) -> None:
    """Writes the weights, and each metric by epoch: null where it is not finite.

    Takes the optimizer off the model: Keras would write its state beside the weights,
    which is twice as large and which only a resumption needs, from its checkpoint.
    """
    model.optimizer = None
    epochs = {
        name: [float(value) if math.isfinite(value) else None for value in values]
        for name, values in history.items()
    }
    with local_output(directory) as folder:
        model.save_weights(str(folder / WEIGHTS_FILE))
        atomic.write_json(folder / HISTORY_FILE, epochs)


# AutoGraph is for a user's model alone; converting our functions takes a second.
_without_autograph = tf.function(autograph=False)


class ServableModel(tf.Module):
    """A trained model together with its preprocessing."""

    def __init__(
        self,
        model: Any,
        tf_transform_output: Any,
        feature_set: FeatureSet,
        all_raw_features: bool,
    ) -> None:
        super().__init__()
        self._get_model = lambda: model
        self.threshold = tf.Variable(THRESHOLD, trainable=False)
        self.variables_of_model = as_tf(model.variables)
        # Keras 3 names a variable by the layers that it is in, TensorFlow does not.
        self.weights_by_name = dict(
            zip(by_name(model.weights), as_tf(model.weights), strict=True)
        )
        self.tables_of_model = [
            value
            for layer in layers_in(model)
            for value in vars(layer).values()
            if isinstance(value, tf.saved_model.experimental.TrackableResource)
        ]
        self.transform = tf_transform_output.transform_features_layer()
        self._feature_set = feature_set
        spec = raw_spec(tf_transform_output, feature_set, all_raw_features)
        label_spec = spec.pop(feature_set.label.feature)
        weight = feature_set.sample_weight
        if weight and weight not in feature_set.features:
            del spec[weight]
        self.raw_spec = spec
        self._inputs = identifiers(spec)
        self._examples_input = "examples"
        while self._examples_input in tf_transform_output.raw_feature_spec():
            self._examples_input = f"serialized_{self._examples_input}"
        schema = tf_transform_output.raw_metadata.schema
        self._one_value = {x.name for x in schema.feature if has_one_value(x)}
        self._in_every_record = {
            x.name for x in schema.feature if x.presence.min_fraction == 1.0
        }
        self._label_spec = _optional(label_spec)

    def signatures(self) -> dict[str, Any]:
        """Returns the concrete function of each signature."""
        examples = tf.TensorSpec([None], tf.string, self._examples_input)
        return {
            "serving_default": self._predict_examples.get_concrete_function(examples),
            "predict_values": self._predict_values.get_concrete_function(
                **{
                    self._inputs[name]: tf.TensorSpec(self._shape(name), item.dtype)
                    for name, item in self.raw_spec.items()
                }
            ),
            "transform_features": self._transform_examples.get_concrete_function(
                examples
            ),
        }

    def features(self) -> dict[str, dict[str, Any]]:
        """Returns what a client of ``predict_values`` needs to know of raw features."""
        return {
            name: {
                "input": self._inputs[name],
                "required": isinstance(item, tf.io.FixedLenFeature),
                "in_every_record": name in self._in_every_record,
            }
            for name, item in self.raw_spec.items()
        }

    def _shape(self, name: str) -> list[int | None]:
        if name in self._one_value:
            return [None]
        return [None, *getattr(self.raw_spec[name], "shape", [None])]

    @_without_autograph
    def _predict_examples(self, examples: tf.Tensor) -> dict[str, tf.Tensor]:
        return self._predict(tf.io.parse_example(examples, self.raw_spec))

    @_without_autograph
    def _predict_values(self, **values: tf.Tensor) -> dict[str, tf.Tensor]:
        return self._predict(
            {
                name: _as_parsed(values[self._inputs[name]], item)
                for name, item in self.raw_spec.items()
            }
        )

    @_without_autograph
    def _transform_examples(self, examples: tf.Tensor) -> dict[str, tf.Tensor]:
        label = self._feature_set.label
        spec = {**self.raw_spec, label.feature: self._label_spec}
        return self.transform(tf.io.parse_example(examples, spec))

    @tf.function
    def _call_model(self, features: dict[str, tf.Tensor]) -> tf.Tensor:
        return self._get_model()(features, training=False)

    def _predict(self, raw: dict[str, Any]) -> dict[str, tf.Tensor]:
        features = decode_images(self.transform(raw), self._feature_set.images)
        label = self._feature_set.label
        prediction = self._call_model(features)
        if label.task == "regression":
            return {label.prediction_key: prediction}
        names = tf.constant(label.class_names)
        if label.task == "multi_label":
            chosen = tf.ragged.boolean_mask(
                tf.broadcast_to(names, tf.shape(prediction)),
                prediction >= THRESHOLD,
            )
            text = tf.strings.reduce_join(chosen, axis=1, separator=", ")
        elif len(label.class_names) == 2:
            is_positive = prediction[:, 0] >= self.threshold
            text = tf.gather(names, tf.cast(is_positive, tf.int64))
        else:
            text = tf.gather(names, tf.argmax(prediction, axis=1))
        return {label.prediction_key: prediction, "label": text[:, None]}


def _optional(spec: Any) -> Any:
    """Returns the spec of a label that an example may lack: it is then of no class.

    That of a regression is NaN.
    """
    if not isinstance(spec, tf.io.FixedLenFeature):
        return spec
    default = np.full(spec.shape, MISSING[tf.as_dtype(spec.dtype)]).tolist()
    return tf.io.FixedLenFeature(spec.shape, spec.dtype, default)


def _as_parsed(value: tf.Tensor, spec: Any) -> Any:
    """Converts plain values to what ``parse_example`` returns."""
    if isinstance(spec, tf.io.FixedLenFeature):
        return tf.reshape(value, [-1, *spec.shape])
    present = is_value(value)
    if value.shape.rank == 1:
        value, present = value[:, tf.newaxis], present[:, tf.newaxis]
    return tf.sparse.SparseTensor(
        indices=tf.where(present),
        values=tf.boolean_mask(value, present),
        dense_shape=tf.shape(value, tf.int64),
    )
