"""Section ``serving_check`` of a config."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator

from sluice.config_section import (
    Count,
    Fraction,
    NotNegative,
    PositiveNumber,
    Section,
    Text,
    expect,
)

# The name of what a model predicts, among statistics.
PREDICTION = "prediction"
_VERSION = re.compile(r"(?<!\w)v?(\d+)[.-](\d+)")


def version_of(server: str) -> tuple[int, int] | None:
    """Returns major and minor version of an image or a version; None without one.

    The tag of an image counts first, then its name, as in ``tf2-cpu.2-15:latest``.
    """
    name, _, tag = server.partition("@")[0].rpartition("/")[2].rpartition(":")
    found = _VERSION.search(tag) or _VERSION.search(name)
    return (int(found[1]), int(found[2])) if found else None


def _server(value: str) -> str:
    if version_of(value) is None:
        expect(
            "a version, such as '2.16.1', or an image with a version, such as "
            "'tensorflow/serving:2.16.1'"
        )
    return value


class ServingCheck(Section):
    """A model is pushed only if a fresh process answers with it (else exit code 5).

    That process loads the exported model, and is asked examples of the split that the
    model gate judges, over HTTP. `false`: models are pushed without it.
    """

    examples: Count = 100
    """How many examples are asked one by one, for at most 10 s."""
    batch: Count = 32
    """The largest number of examples that are asked at once."""
    max_difference: NotNegative = 1e-4
    """Largest difference of two answers to one example, absolute, and of predictions
    beyond 1 as a share of the largest. A model in float16 or bfloat16 needs more."""
    max_load_s: PositiveNumber | None = None
    """How long the model may take to load. null: until `timeout_s`."""
    max_p50_ms: PositiveNumber | None = None
    """Limit of the median time of a request with one example. null: none."""
    max_p99_ms: PositiveNumber | None = None
    """Limit of the 99th percentile. null: none."""
    max_changed_answers: Fraction | None = None
    """Of the 1,000 requests that were recorded last: share of those that the served
    model and the new one may answer with another class. null: it is only shown."""
    timeout_s: PositiveNumber = 300.0
    """After this time without an answer, or until the server is ready, the check has
    failed."""
    server: Annotated[Text, AfterValidator(_server)] | None = None
    """The TensorFlow Serving that will serve the model, a version or an image such as
    `tensorflow/serving:2.16.1`. One that is older than the TensorFlow of the export is
    a warning; a server of TensorFlow 1 fails. null: it is not compared."""


class Settings(ServingCheck):
    """The section, and what the pipeline says of the examples."""

    split: str
    """Of the examples."""
    hidden: tuple[str, ...] = ()
    """Features that a client does not know: the label, and weights."""
    sensitive: tuple[str, ...] = ()
    """Features that requests are recorded without."""
    is_private: bool = False
    """Whether no value of an example may be written anywhere."""
    keeps_predictions: bool = False
    """Whether the version gets statistics of its predictions for the split."""


def _switch(value: Any) -> Any:
    if isinstance(value, bool):
        return ServingCheck.model_construct() if value else None
    return value


ServingCheckSpec = Annotated[
    ServingCheck | None,
    BeforeValidator(_switch, json_schema_input_type=ServingCheck | bool | None),
]
