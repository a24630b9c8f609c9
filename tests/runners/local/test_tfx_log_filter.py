"""The filter of TFX's warnings."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from runners.local.tfx_log_filter import tfx_log_filter

pytestmark = pytest.mark.unit


@pytest.fixture
def absl() -> Iterator[logging.Logger]:
    """The logger that TFX writes to, as it is without us."""
    logger = logging.getLogger("absl")
    filters = list(logger.filters)
    yield logger
    logger.filters[:] = filters


def test_repeated_warnings_of_tfx_are_filtered(
    absl: logging.Logger, caplog: pytest.LogCaptureFixture
) -> None:
    tfx_log_filter()
    tfx_log_filter()
    absl.warning("ArtifactQuery.property_predicate is not supported.")
    absl.warning("something else")
    assert [record.getMessage() for record in caplog.records] == ["something else"]


@pytest.mark.parametrize("message", [{"a": 1}, [1, 2], None])
def test_any_object_may_be_logged(
    absl: logging.Logger, caplog: pytest.LogCaptureFixture, message: Any
) -> None:
    tfx_log_filter()
    absl.warning(message)
    assert caplog.records[0].getMessage() == str(message)
