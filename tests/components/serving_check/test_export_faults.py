"""Seeded faults of exported models: the serving check names each of them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from components.serving_check.settings import Settings
from tests.kit import served_models
from tests.kit.served_models import save

pytestmark = [
    pytest.mark.tf,
    pytest.mark.fault,
    pytest.mark.usefixtures("fast_servers"),
]


def check(model: Path, judged: Path, examples: str, **settings: Any) -> Any:
    from components.serving_check.check import check_model

    given: dict[str, Any] = {
        "timeout_s": 60.0,
        "batch": 8,
        "split": "test",
        "hidden": ("y",),
    }
    return check_model(model, judged, examples, Settings(**(given | settings)))


def damaged(name: str, kept: int | None = None) -> Callable[[Path, Path], None]:
    """Returns what deletes a file of a model, or keeps its first bytes."""

    def damage(model: Path, good: Path) -> None:
        shutil.copytree(good, model)
        (file,) = model.glob(name)
        content = file.read_bytes()
        file.unlink()
        if kept is not None:
            file.write_bytes(content[:kept])

    return damage


def hangs(model: Path, good: Path) -> None:
    """A file that is never read to its end."""
    shutil.copytree(good, model)
    (file,) = model.glob("variables/*.data*")
    file.unlink()
    os.mkfifo(file)


def unknown_op(*ops: str) -> Callable[[Path, Path], None]:
    def damage(model: Path, good: Path) -> None:
        shutil.copytree(good, model)
        served_models.replace_op(model, ops)

    return damage


def described(**about: Any) -> Callable[[Path, Path], None]:
    def describe(model: Path, good: Path) -> None:
        shutil.copytree(good, model)
        served_models.describe(model, **about)

    return describe


def saved(change: Any = None, **faults: Any) -> Callable[[Path, Path], None]:
    """Returns what saves a model with a change of its outputs."""

    def build(model: Path, _: Path) -> None:
        import tensorflow as tf

        def changed(outputs: dict[str, Any], raw: dict[str, Any]) -> dict[str, Any]:
            changed = {**outputs, **change(tf, outputs["probabilities"], raw)}
            return {name: x for name, x in changed.items() if x is not None}

        save(model, changed if change else None, **faults)

    return build


def endless(tf: Any, found: Any, _: Any) -> Any:
    return {"probabilities": tf.while_loop(lambda x: True, lambda x: [x], [found])[0]}


def crash(tf: Any, found: Any, _: Any) -> Any:
    with tf.control_dependencies([tf.raw_ops.Abort(error_msg="broken")]):
        return tf.identity(found)


def slow(tf: Any, found: Any, _: Any) -> Any:
    start = tf.random.uniform([400, 400])
    steps = tf.while_loop(
        lambda i, x: i < 20, lambda i, x: (i + 1, x @ x / 400.0), (0, start)
    )
    return {"probabilities": found + 0.0 * tf.reduce_sum(steps[1])}


def in_python(tf: Any, found: Any, _: Any) -> Any:
    same = tf.py_function(lambda x: x, [found], tf.float32)
    return {"probabilities": tf.ensure_shape(same, [None, 3])}


def probabilities(change: Any) -> Callable[[Path, Path], None]:
    return saved(lambda tf, found, raw: {"probabilities": change(tf, found, raw)})


def only_where_a_is_large(tf: Any, found: Any, raw: Any) -> Any:
    is_large = raw["a"][:, None] > 1.5
    return tf.where(is_large, float("nan"), found)


FEATURE = {"required": False, "in_every_record": False}
TWICE = {name: {"input": "a", **FEATURE} for name in ("a", "b")}
TWICE |= {name: {"input": name, **FEATURE} for name in ("text", "ids")}
LOAD, EXAMPLES, VALUES = "load (s)", "serving_default", "predict_values"
AGAIN, EVALUATED = f"{EXAMPLES} again", f"{EXAMPLES} as evaluated"
# The fault, the row that names it, and a part of what that says. ``None``: the model
# that was evaluated has the fault, too.
FAULTS: dict[str, Any] = {
    "no_vocabulary": (damaged("assets/*words.txt"), LOAD, "words.txt"),
    "no_variables": (damaged("variables/*.data*"), LOAD, "cannot be loaded"),
    "cut_variables": (damaged("variables/*.data*", 20), LOAD, "cannot be loaded"),
    "cut_index": (damaged("variables/*.index", 30), LOAD, "cannot be loaded"),
    "no_graph": (damaged("saved_model.pb"), LOAD, "saved_model.pb"),
    "cut_graph": (damaged("saved_model.pb", 5000), LOAD, "cannot be read"),
    "no_facts": (damaged("assets.extra/classes.json"), EXAMPLES, "is missing"),
    "hangs_while_loading": (hangs, LOAD, "not ready within 4 s"),
    "unknown_op": (unknown_op("Softmax"), LOAD, "NoSuchOp"),
    "unknown_op_in_parsing": (unknown_op("ParseExampleV2"), LOAD, "NoSuchOp"),
    "crashes": (
        probabilities(crash),
        "server",
        "did not answer: it ended its process",
    ),
    "hangs": (saved(endless), "server", "did not answer within 4 s"),
    "python_code": (
        saved(in_python),
        EXAMPLES,
        "example 1: HTTP 400: ValueError: Could not find callback",
    ),
    "slow": (saved(slow), "p50 (ms)", "above the limit 5"),
    "slow_to_load": (shutil.copytree, LOAD, "above the limit 1e-06"),
    "lower_cased": (
        saved(names={VALUES: "predict_VALUES"}),
        VALUES,
        "no such signature, only predict_VALUES, serving_default",
    ),
    "no_default": (
        saved(names={EXAMPLES: "serve"}),
        EXAMPLES,
        "no such signature, only predict_values, serve",
    ),
    "swapped": (
        saved(names={EXAMPLES: VALUES, VALUES: EXAMPLES}),
        EXAMPLES,
        "it takes a, ids, text, not serialized examples alone",
    ),
    "output_renamed": (
        saved(lambda tf, found, _: {"scores": found, "probabilities": None}),
        EXAMPLES,
        "it returns label (string), scores (float32), not label (string), probabil",
    ),
    "output_of_two_words": (
        probabilities(lambda tf, found, _: tf.cast(found, tf.float64)),
        EXAMPLES,
        "probabilities (float64), not label (string), probabilities (float32)",
    ),
    "label_is_a_number": (
        saved(lambda tf, found, _: {"label": tf.argmax(found, axis=1)[:, None]}),
        EXAMPLES,
        "it returns label (int64)",
    ),
    "label_is_no_class": (
        saved(lambda tf, found, _: {"label": tf.fill([tf.shape(found)[0], 1], "tan")}),
        EXAMPLES,
        "example 1: label is 'tan', which is none of the classes",
    ),
    "asks_for_the_label": (
        saved(asks="y"),
        VALUES,
        "it takes a, ids, text, y, but the inputs of features are a, ids, text",
    ),
    "needs_the_label": (saved(needs="y"), EXAMPLES, "example 1: HTTP 400"),
    "label_is_a_feature": (
        described(
            features={x: {"input": x, **FEATURE} for x in ("a", "text", "ids", "y")}
        ),
        EXAMPLES,
        "asks for y, which a client does not know",
    ),
    "number_as_text": (saved(number="string"), VALUES, "example 1: HTTP 400"),
    "number_as_integer": (saved(number="int64"), VALUES, "example 1: HTTP 400"),
    "one_input_for_two": (
        described(features=TWICE),
        VALUES,
        "it takes a, ids, text, but the inputs of features are a, a, ids, text",
    ),
    "other_classes": (
        described(classes=[*"abcd"]),
        EXAMPLES,
        "probabilities has the shape (1, 3), not (1, 4)",
    ),
    "nan": (
        probabilities(lambda tf, found, _: found * float("nan")),
        EXAMPLES,
        "example 1: probabilities has nan",
    ),
    "nan_for_some": (
        probabilities(only_where_a_is_large),
        EXAMPLES,
        "example 11: probabilities has nan",
    ),
    "infinite": (
        probabilities(lambda tf, found, _: found / 0.0),
        EXAMPLES,
        "example 1: probabilities has inf",
    ),
    "negative": (
        probabilities(lambda tf, found, _: found - 0.5),
        EXAMPLES,
        "which is no probability",
    ),
    "sum": (probabilities(lambda tf, found, _: found * 0.9), EXAMPLES, "sum to 0.9"),
    "random": (
        probabilities(
            lambda tf, found, _: tf.nn.softmax(tf.random.normal(tf.shape(found)))
        ),
        AGAIN,
        "the first time",
    ),
    "fewer_rows": (
        saved(lambda tf, found, _: {"probabilities": found[:5]}),
        EXAMPLES,
        "a batch of 8: HTTP 400",
    ),
    "one_row": (
        saved(
            lambda tf, found, raw: {
                "probabilities": found[:1],
                "label": tf.constant([["red"]]),
            }
        ),
        EXAMPLES,
        "a batch of 8: 1 answers",
    ),
    "only_one_example": (
        probabilities(lambda tf, found, _: tf.ensure_shape(found, [1, 3])),
        EXAMPLES,
        "a batch of 8: HTTP 400",
    ),
    "answers_by_batch": (
        probabilities(
            lambda tf, found, _: tf.nn.softmax(found - tf.reduce_mean(found, axis=0))
        ),
        EVALUATED,
        "of the evaluated model",
    ),
    "other_values": (
        saved(
            lambda tf, found, _: {"probabilities": tf.reverse(found, [1])},
            of_values=True,
        ),
        EVALUATED,
        "of the evaluated model",
    ),
    "older_major": (
        shutil.copytree,
        "TensorFlow Serving",
        "which is newer: the server may lack",
    ),
}
SETTINGS: dict[str, Any] = {
    "hangs": {"timeout_s": 4.0},
    "hangs_while_loading": {"timeout_s": 4.0},
    "slow": {"max_p50_ms": 5.0},
    "slow_to_load": {"max_load_s": 1e-6},
    "older_major": {"server": "tensorflow/serving:1.15.0-gpu"},
}
# What the evaluation has not met: the model it judged is good.
JUDGED_GOOD = {"hangs", "crashes", "python_code", "other_values"}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named(name, tmp_path, good, examples):
    build, row, text = FAULTS[name]
    model = tmp_path / "model"
    if build is shutil.copytree:
        build(good, model)
    else:
        build(model, good)
    is_damaged = getattr(build, "__name__", "") != "build"
    judged = good if is_damaged or name in JUDGED_GOOD else model
    verdict = check(model, judged, examples, **SETTINGS.get(name, {}))
    first, *_ = verdict.failures
    assert (first.check, verdict.passed) == (row, False)
    assert text in verdict.causes[0]
    assert not (model / "assets.extra" / "tf_serving_warmup_requests").exists()
