"""Trains a small model in several distributions, and prints what came out as JSON.

Run by ``test_distribution``. TensorFlow is imported once, and each case is forked.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import traceback
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest import mock

from sluice.compat import prepare_environment

prepare_environment()

import tensorflow as tf  # noqa: E402

from pipeline.config.feature_set import Feature, FeatureSet, Label  # noqa: E402
from pipeline.training.build import ModelSettings, build_model  # noqa: E402
from pipeline.training.compile import CompileSettings, compile_model  # noqa: E402
from pipeline.training.models import ModelInputs  # noqa: E402
from pipeline.training.strategy.devices import DeviceSettings  # noqa: E402
from pipeline.training.strategy.distribution import (  # noqa: E402
    Distribution,
    StrategySettings,
    choose_distribution,
)
from sluice.errors import NodeError, SluiceError  # noqa: E402

FEATURES = FeatureSet((Feature("a", "numeric"),), Label("y", (0, 1, 2)))
INPUTS = ModelInputs(FEATURES, {"a_xf": (4,)}, {"a_xf": tf.float32}, {})
MODEL = "pipeline.training.models.dense:build_model"
BATCH, STEPS, EPOCHS = 32, 6, 3


def dataset() -> tf.data.Dataset:
    """Returns an epoch of batches whose label is the largest of three values."""
    values = tf.random.stateless_normal([BATCH * STEPS, 4], seed=[1, 2])
    labels = tf.argmax(values[:, :3], axis=1)[:, tf.newaxis]
    data = tf.data.Dataset.from_tensor_slices(({"a_xf": values}, labels))
    return data.batch(BATCH, drop_remainder=True)


def compiled(distribution: Distribution, precision: str = "float32") -> tf.keras.Model:
    """Returns the model that all cases train."""
    params = {"hidden_units": [16], "dropout": 0.0}
    settings = ModelSettings(MODEL, params, seed=3, precision=precision)
    model = build_model(settings, INPUTS, distribution)
    compile_model(
        model,
        CompileSettings(EPOCHS, learning_rate=0.01),
        FEATURES.label,
        steps_per_epoch=STEPS,
        distribution=distribution,
    )
    return model


def train(precision: str = "float32", **settings: Any) -> dict[str, Any]:
    """Trains, and returns the losses and how they were computed."""
    given = StrategySettings(batch_size=BATCH, **settings)
    distribution = choose_distribution(given)
    model = compiled(distribution, precision)
    history = model.fit(dataset(), epochs=EPOCHS, verbose=0)
    return {
        "line": distribution.line,
        "replicas": distribution.replicas,
        "batch_per_replica": distribution.batch_per_replica,
        "loss": history.history["loss"],
        "steps": int(model.optimizer.iterations.numpy()),
        "optimizer": type(model.optimizer).__name__,
        "hidden": model.layers[-2].compute_dtype,
        "output": model.output.dtype.name,
        "weights": sorted({weight.dtype.name for weight in model.trainable_variables}),
    }


def on_a_tpu(name: str) -> dict[str, Any]:
    """Traces a train step under ``TPUStrategy``; nothing can be run without a TPU."""
    calls: list[str] = []
    job = "localhost" if name == "local" else "worker"
    devices = [f"/job:{job}/replica:0/task:0/device:TPU:{core}" for core in range(8)]
    coordinates = [[[x, y, 0, core] for x in (0, 1) for y in (0, 1) for core in (0, 1)]]
    topology = tf.tpu.experimental.Topology(
        mesh_shape=[2, 2, 1, 2], device_coordinates=coordinates
    )
    metadata = tf.tpu.experimental.TPUSystemMetadata(
        num_cores=8,
        num_hosts=1,
        num_of_cores_per_host=8,
        topology=topology,
        devices=[SimpleNamespace(name=device) for device in devices],
    )
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver
    patch = mock.patch.object
    with (
        mock.patch.dict(os.environ, {"TPU_NAME": name}),
        patch(resolver, "get_tpu_system_metadata", return_value=metadata),
        patch(
            tf.config,
            "experimental_connect_to_cluster",
            lambda resolver: calls.append("connect"),
        ),
        patch(
            tf.tpu.experimental,
            "initialize_tpu_system",
            lambda resolver: calls.append("initialize"),
        ),
    ):
        distribution = choose_distribution(StrategySettings(batch_per_replica=16))
    result = {
        "calls": calls,
        "line": distribution.line,
        "replicas": distribution.replicas,
        "batch_size": distribution.batch_size,
        "steps_per_execution": distribution.steps_per_execution,
        "static_shapes": distribution.static_shapes,
    }
    strings = replace(INPUTS, dtypes={"a_xf": tf.string})
    try:
        build_model(ModelSettings(MODEL), strings, distribution)
    except NodeError as error:
        result["strings"] = str(error)
    if name == "local":
        result |= traced(distribution)
    return result


def traced(distribution: Distribution) -> dict[str, Any]:
    """Traces the train step as ``fit`` does, and returns what it is made of."""
    model = compiled(distribution, "mixed_bfloat16")
    batches = dataset().unbatch().batch(distribution.batch_size, drop_remainder=True)
    distributed = distribution.strategy.experimental_distribute_dataset(batches)
    specs = tf.nest.flatten(distributed.element_spec, expand_composites=True)
    model.make_train_function()
    step = model.train_tf_function.get_concrete_function(iter(distributed))
    graph = step.graph.as_graph_def()
    functions = [function.node_def for function in graph.library.function]
    return {
        "shapes": [spec.shape.as_list() for spec in specs],
        "copies": len(model.trainable_variables[0].values),
        "ops": sorted({node.op for node in itertools.chain(graph.node, *functions)}),
    }


def refusal(**settings: Any) -> str:
    """Returns the error of settings that cannot be used."""
    try:
        choose_distribution(StrategySettings(**settings))
    except SluiceError as error:
        return str(error)
    return "no error"


def divided(**settings: Any) -> dict[str, Any]:
    """Returns settings under which a GPU, too, can be divided."""
    memory_mb = 2048 if tf.config.list_physical_devices("GPU") else None
    return {"devices": DeviceSettings(memory_limit_mb=memory_mb), **settings}


def too_late() -> str:
    """Returns the error of devices that are configured after their first use."""
    tf.constant(1)
    return refusal(replicas=2)


def local_paths() -> str:
    """Returns the error of local files for a TPU on another machine."""
    with mock.patch.dict(os.environ, {"TPU_NAME": "grpc://10.0.0.1:8470"}):
        return refusal(paths=["gs://bucket/train-*", "/data/eval-*"])


CASES = {
    "one_device": lambda: train(devices=DeviceSettings(log_placement=True)),
    "mirrored 2": lambda: [
        train("mixed_bfloat16", **divided(replicas=2)),
        train(**divided(replicas=2)),
    ],
    "mirrored 4": lambda: train(**divided(replicas=4)),
    "central_storage": lambda: train(
        strategy="central_storage", devices=DeviceSettings(logical=2)
    ),
    "float16": lambda: train(
        "mixed_float16", **divided(replicas=4, steps_per_execution=4)
    ),
    "too late": too_late,
    "no such GPU": lambda: refusal(devices=DeviceSettings(visible=[99])),
    "batch": lambda: refusal(**divided(replicas=4, batch_size=30)),
    "local TPU": lambda: on_a_tpu("local"),
    "remote TPU": lambda: on_a_tpu("grpc://10.0.0.1:8470"),
    "local paths": local_paths,
}


def run_forked(name: str) -> Any:
    """Returns a case's result, from a process of its own: devices are made once."""
    ours, theirs = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            with open(f"{sys.argv[1]}/{name}.log", "w") as log:
                os.dup2(log.fileno(), 1)
                os.dup2(log.fileno(), 2)
                with open(theirs, "w") as pipe:
                    json.dump(CASES[name](), pipe)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)  # as the local runner ends a node's process
    os.close(theirs)
    with open(ours) as pipe:
        text = pipe.read()
    os.waitpid(pid, 0)
    return json.loads(text or "null")


if __name__ == "__main__":
    print(json.dumps({name: run_forked(name) for name in CASES}))
