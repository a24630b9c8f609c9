"""Stock side of ``speed.py``: a pipeline as TFX's template and examples write it.

``python speed_stock.py CONFIG FOLDER [rule]``. Functions are given by import path, as
in the template, which saves the wheels and the pip of ``module_file``.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import tensorflow as tf
import tensorflow_model_analysis as tfma
import tensorflow_transform as tft
from absl import logging
from google.protobuf import json_format
from speed_model import build_model, decode_images, exclude_keras_from_autograph
from tfx import v1 as tfx
from tfx_bsl.public import tfxio


def _fill_in_missing(x: Any) -> Any:
    if not isinstance(x, tf.sparse.SparseTensor):
        return x
    column = tf.sparse.SparseTensor(x.indices, x.values, [x.dense_shape[0], 1])
    return tf.sparse.to_dense(column, "" if x.dtype == tf.string else 0)


def preprocessing_fn(
    inputs: dict[str, Any], custom_config: dict[str, Any]
) -> dict[str, Any]:
    """Transforms the features of the config, ``[batch, 1]``; images stay encoded."""
    label = custom_config["label"]["feature"]
    outputs = {f"{label}_xf": inputs[label]}
    for key, spec in custom_config["features"].items():
        x, kind = _fill_in_missing(inputs[key]), spec["kind"]
        if kind == "numeric":
            x = tft.scale_to_z_score(tf.cast(x, tf.float32))
        elif kind == "bucketized":
            x = tft.bucketize(x, spec["buckets"])
        elif kind == "vocabulary":
            x = tft.compute_and_apply_vocabulary(
                x, top_k=spec["top_k"], num_oov_buckets=1, vocab_filename=key
            )
        elif kind == "hashed":
            text = x if x.dtype == tf.string else tf.strings.as_string(x)
            x = tf.strings.to_hash_bucket_fast(text, spec["buckets"])
        outputs[f"{key}_xf"] = x
    return outputs


def run_fn(fn_args: Any) -> None:
    """Trains the model and exports it with the two signatures of the template."""
    config = fn_args.custom_config
    label, transformed = config["label"]["feature"], fn_args.transform_output
    tf_transform_output = tft.TFTransformOutput(transformed)
    options = tfxio.TensorFlowDatasetOptions(
        batch_size=config["train"]["batch_size"], label_key=f"{label}_xf"
    )
    schema = tf_transform_output.transformed_metadata.schema

    def input_fn(files: Any) -> Any:
        factory = fn_args.data_accessor.tf_dataset_factory
        return factory(files, options, schema).map(
            lambda features, label: (decode_images(features, config), label),
            num_parallel_calls=tf.data.AUTOTUNE,
        )

    sizes = {
        key: tf_transform_output.vocabulary_size_by_name(key)
        for key, spec in config["features"].items()
        if spec["kind"] == "vocabulary"
    }
    with tf.distribute.MirroredStrategy().scope():
        model = build_model(config, sizes)
    model.fit(
        input_fn(fn_args.train_files),
        epochs=config["train"]["epochs"],
        steps_per_epoch=fn_args.train_steps,
        validation_data=input_fn(fn_args.eval_files),
        validation_steps=fn_args.eval_steps,
        callbacks=[tf.keras.callbacks.TensorBoard(fn_args.model_run_dir)],
    )
    model.tft_layer_inference = tf_transform_output.transform_features_layer()
    model.tft_layer_eval = tf_transform_output.transform_features_layer()
    signature = [tf.TensorSpec([None], tf.string, "examples")]

    @tf.function(input_signature=signature)
    def serve_tf_examples_fn(serialized: Any) -> dict[str, Any]:
        spec = tf_transform_output.raw_feature_spec()
        spec.pop(label)
        raw = tf.io.parse_example(serialized, spec)
        return {"outputs": model(decode_images(model.tft_layer_inference(raw), config))}

    @tf.function(input_signature=signature)
    def transform_features_fn(serialized: Any) -> Any:
        spec = tf_transform_output.raw_feature_spec()
        return model.tft_layer_eval(tf.io.parse_example(serialized, spec))

    signatures = {
        "serving_default": serve_tf_examples_fn,
        "transform_features": transform_features_fn,
    }
    tf.saved_model.save(model, fn_args.serving_model_dir, signatures=signatures)


def eval_config(config: dict[str, Any]) -> Any:
    """Returns the metrics, thresholds and slices of the config for TFMA."""
    metrics, evaluate = [], config["evaluate"]
    for item in evaluate["metrics"]:
        params = {"name": item["name"], **item["params"]}
        metric = {"class_name": item["class"], "config": json.dumps(params)}
        for threshold in evaluate["thresholds"]:
            if threshold["metric"] == item["name"]:
                # TFMA would apply ``threshold`` to every slice.
                bound = {"value_threshold": {"lower_bound": threshold["lower_bound"]}}
                overall = {"slicing_specs": [{}], "threshold": bound}
                metric["per_slice_thresholds"] = [overall]
        metrics.append(metric)
    model = {
        "signature_name": "serving_default",
        "label_key": f"{config['label']['feature']}_xf",
        "preprocessing_function_names": ["transform_features"],
    }
    slices = [{"feature_keys": keys} for keys in evaluate["slices"]]
    document = {
        "model_specs": [model],
        "metrics_specs": [{"metrics": metrics}],
        "slicing_specs": [{}, *slices],
    }
    return json_format.ParseDict(document, tfma.EvalConfig())


def create_components(config: dict[str, Any], serving_dir: str) -> list[Any]:
    """Returns the components of the template, with a test split."""
    components, proto, types = tfx.components, tfx.proto, tfx.types.standard_artifacts
    patterns = [
        proto.Input.Split(name=name, pattern=pattern)
        for name, pattern in config["data"]["splits"].items()
    ]
    example_gen = components.ImportExampleGen(
        config["data"]["dir"], input_config=proto.Input(splits=patterns)
    )
    examples = example_gen.outputs["examples"]
    statistics_gen = components.StatisticsGen(examples)
    schema_gen = components.ImportSchemaGen(config["schema"])
    schema = schema_gen.outputs["schema"]
    example_validator = components.ExampleValidator(
        statistics_gen.outputs["statistics"], schema
    )
    transform = components.Transform(
        examples,
        schema,
        preprocessing_fn="speed_stock.preprocessing_fn",
        custom_config=config,
    )
    trainer = components.Trainer(
        run_fn="speed_stock.run_fn",
        examples=transform.outputs["transformed_examples"],
        schema=schema,
        transform_graph=transform.outputs["transform_graph"],
        train_args=proto.TrainArgs(num_steps=config["steps"]["train"]),
        eval_args=proto.EvalArgs(num_steps=config["steps"]["eval"]),
        custom_config=config,
    )
    model = trainer.outputs["model"]
    model_resolver = tfx.dsl.Resolver(
        strategy_class=tfx.dsl.experimental.LatestBlessedModelStrategy,
        model=tfx.dsl.Channel(types.Model),
        model_blessing=tfx.dsl.Channel(types.ModelBlessing),
    ).with_id("latest_blessed_model_resolver")
    evaluator = components.Evaluator(
        examples,
        model,
        model_resolver.outputs["model"],
        eval_config=eval_config(config),
        example_splits=["test"],
    )
    filesystem = proto.PushDestination.Filesystem(base_directory=serving_dir)
    pusher = components.Pusher(
        model,
        evaluator.outputs["blessing"],
        push_destination=proto.PushDestination(filesystem=filesystem),
    )
    data = [example_gen, statistics_gen, schema_gen, example_validator, transform]
    return [*data, trainer, model_resolver, evaluator, pusher]


def main(config_file: str, folder: str, *rule: str) -> None:
    """Runs the pipeline, with AutoGraph kept off Keras if there is a third argument."""
    logging.set_verbosity(logging.INFO)
    if rule:
        exclude_keras_from_autograph()
    with open(config_file) as file:
        config = json.load(file)
    metadata = tfx.orchestration.metadata
    pipeline = tfx.dsl.Pipeline(
        pipeline_name="stock",
        pipeline_root=f"{folder}/artifacts",
        components=create_components(config, f"{folder}/serving"),
        metadata_connection_config=metadata.sqlite_metadata_connection_config(
            f"{folder}/metadata.db"
        ),
    )
    tfx.orchestration.LocalDagRunner().run(pipeline)
    if not tf.io.gfile.glob(f"{folder}/serving/*"):
        sys.exit("the model was not pushed")


if __name__ == "__main__":
    main(*sys.argv[1:])
