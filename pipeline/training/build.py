"""Training step 2, build: the model with its initial weights."""

from __future__ import annotations

import importlib
import inspect
import sys
import tempfile
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from pipeline.config.features import SAMPLE_WEIGHT_KEY, FeatureSet
from pipeline.config.label import transformed_name
from pipeline.training.keras_of import is_keras_3, keras_of, layers_in
from pipeline.training.models import TARGET_SCALE, ModelInputs
from pipeline.training.models.published_weights import refresh_normalization
from pipeline.training.preprocessing import number_of_ids
from pipeline.training.strategy.distribution import Distribution
from sluice.errors import NodeError, SluiceError
from sluice.patches.tensorflow import exclude_keras_from_autograph


def load_function(import_path: str) -> Any:
    """Returns a function or class by import path, ``package.module:name``."""
    module, _, name = import_path.partition(":")
    return getattr(importlib.import_module(module), name)


def model_inputs(feature_set: FeatureSet, tf_transform_output: Any) -> ModelInputs:
    """Returns what the model is given.

    Raises:
      ValueError: preprocessing returned a sparse feature.
    """
    spec = tf_transform_output.transformed_feature_spec()
    (size,) = spec.pop(feature_set.label.key).shape
    spec.pop(SAMPLE_WEIGHT_KEY, None)
    sparse = [
        name
        for name, feature in spec.items()
        if not isinstance(feature, tf.io.FixedLenFeature)
    ]
    if sparse:
        raise ValueError(
            f"preprocessing must return dense tensors; these are sparse: {sparse}"
        )
    shapes = {name: tuple(feature.shape) for name, feature in spec.items()}
    dtypes = {name: feature.dtype for name, feature in spec.items()}
    for name, image in feature_set.images.items():
        shapes[name] = (image.height, image.width, image.channels)
        dtypes[name] = tf.float32
    categorical = {
        transformed_name(name): number_of_ids(name, feature_set, tf_transform_output)
        for name, feature in feature_set.features.items()
        if feature.is_categorical and transformed_name(name) in shapes
    }
    if feature_set.label.task == "classification":
        classes = len(feature_set.label.class_names)
        size = 1 if classes == 2 else classes
    return ModelInputs(feature_set, shapes, dtypes, categorical, units=size)


def build_model(
    function: str,
    params: Mapping[str, Any],
    inputs: ModelInputs,
    distribution: Distribution,
    *,
    seed: int = 0,
    precision: str = "float32",
) -> Any:
    """Returns the uncompiled model with its initial weights.

    Seeds Python, NumPy and TensorFlow first, so that building and fitting is
    reproducible. A model that Keras would build with its first batch is built here:
    warm start, freezing and checkpoints need its variables.

    Args:
      function: import path, ``package.module:function``; see
        ``pipeline.training.models``.
      params: its arguments.
      inputs: what the model is given.
      distribution: in whose scope it is built.
      seed: of the initial weights.
      precision: what layers compute in, the name of a Keras policy.

    Returns:
      A ``tf.keras.Model``, or a ``keras.Model`` of Keras 3.

    Raises:
      NodeError: the function returns no model of the label's classes.
    """
    exclude_keras_from_autograph()
    make = load_function(function)
    # Layers then draw from a tf.random.Generator of their own, with a seed from here.
    tf.keras.backend.experimental.enable_tf_random_generator()
    # Names such as dense_1 count on in a process: a warm start compares them.
    tf.keras.backend.reset_uids()
    modules = [tf.keras]
    if not function.startswith("pipeline.training.models"):
        import keras  # The function decides whose model it makes.

        keras.utils.clear_session(free_memory=False)
        modules.append(keras)
    policies = [module.mixed_precision.global_policy() for module in modules]
    for module in modules:
        module.utils.set_random_seed(seed)
        module.mixed_precision.set_global_policy(precision)
    try:
        with distribution.strategy.scope():
            model = make(inputs, dict(params))
            _check_model(model, function, inputs, distribution)
    except SluiceError:
        raise
    except Exception as error:
        if not _imports_keras_3(make):
            raise
        first = str(error).partition("\n")[0]
        raise NodeError(
            f"the model cannot be built: {type(error).__name__}: {first:.200}",
            where=function,
            hint="with Keras 3, take inputs.keras_inputs(keras) and "
            "inputs.output_layer(keras), and give the model only inputs that its "
            "output needs",
        ) from error
    finally:
        for module, policy in zip(modules, policies, strict=True):
            module.mixed_precision.set_global_policy(policy)
    return model


def _imports_keras_3(function: Any) -> bool:
    """Whether the module of a function has imported Keras 3, or a part of it."""
    names = vars(sys.modules[function.__module__]).values()
    modules = filter(inspect.ismodule, names)
    return any(module.__name__.partition(".")[0] == "keras" for module in modules)


def _check_model(
    model: Any, function: str, inputs: ModelInputs, distribution: Distribution
) -> None:
    """Builds a model that is not built yet, and checks its output."""
    try:
        keras = keras_of(model)
    except TypeError:
        raise NodeError(
            f"{function} does not return a model of tf.keras or Keras 3, but "
            f"{model!r:.80}",
            where="model",
        ) from None
    if is_keras_3(model):
        _check_keras_3(model, function, inputs, distribution)
    # A subclassed model has no symbolic outputs, and is built by its first call.
    outputs = getattr(model, "outputs", None) or tf.nest.flatten(
        model(inputs.keras_inputs(keras))
    )
    shapes = [tuple(output.shape) for output in outputs]
    if [shape[1:] for shape in shapes] != [(inputs.units,)]:
        label = inputs.feature_set.label
        classes = f" of {len(label.class_names)} classes" if label.classes else ""
        raise NodeError(
            f"the model's output does not fit the label, {label.task}{classes}",
            where=function,
            expected=f"(None, {inputs.units})",
            actual=", ".join(map(str, shapes)),
            hint="end the model with inputs.output_layer(), or of Keras 3 with "
            "inputs.output_layer(keras)",
        )


def _check_keras_3(
    model: Any, function: str, inputs: ModelInputs, distribution: Distribution
) -> None:
    """Raises a ``NodeError`` if a model of Keras 3 cannot be trained here."""
    what = None
    # Of a dict, Keras 3 takes as many as it needs, in the order of their names.
    taken = model.input if getattr(model, "inputs", None) else None
    if isinstance(taken, dict) and taken.keys() != inputs.shapes.keys():
        what = f"a dict of {len(taken)} inputs is not all {len(inputs.shapes)} features"
        hint = "give keras.Model a list: Keras 3 finds the inputs of a list by name"
    if (backend := keras_of(model).backend.backend()) != "tensorflow":
        what = f"Keras 3 computes with {backend}, not with TensorFlow"
        hint = "unset KERAS_BACKEND, and remove backend from ~/.keras/keras.json"
    if distribution.kind not in ("one_device", "mirrored"):
        what = f"a model of Keras 3 cannot be trained as {distribution.kind}"
        hint = "train it on one device or mirrored, or make it with tf.keras"
    if what:
        raise NodeError(what, where=function, hint=hint)


def target_scale(model: Any) -> Any:
    """Returns the layer from z-scores to the label's unit; None if there is none."""
    scales = (layer for layer in layers_in(model) if layer.name == TARGET_SCALE)
    return next(scales, None)


def set_target_scale(model: Any, mean: Any, deviation: Any) -> None:
    """Sets mean and standard deviation, ``[targets]``, of a regression's label."""
    if layer := target_scale(model):
        layer.set_weights([np.diag(deviation), np.asarray(mean)])


def copy_weights(source: Any, target: Any) -> None:
    """Sets the weights of a model to those of the same model under another strategy.

    All workers that share the training of either must call this.
    """
    if source is target:
        return
    if is_keras_3(source):  # Their order does not depend on what is frozen.
        target.set_weights(source.get_weights())
        return
    with tempfile.TemporaryDirectory() as folder:
        # By object, not by position: the order of ``model.weights`` depends on which
        # layers are frozen. Parameter servers have parts of weights.
        path = tf.train.Checkpoint(model=source).write(f"{folder}/weights")
        reading = tf.train.Checkpoint(model=target).read(path)
        reading.assert_existing_objects_matched().expect_partial()
    refresh_normalization(target)
