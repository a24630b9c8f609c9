"""Calls a function for many items, on the workers of an engine of Beam."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from sluice.errors import SluiceError
from sluice.storage.storage import storage_for

_Item = TypeVar("_Item")
_Answer = TypeVar("_Answer")


def run_on_engine(
    function: Callable[[_Item], _Answer],
    items: Sequence[_Item],
    make_pipeline: Callable[[], Any],
    folder: str,
) -> list[_Answer]:
    """Returns the function's answers in the order of the items.

    An engine may call it again for the same item.

    Args:
      function: of a module that the workers can import, or a ``partial`` of one.
      items: picklable.
      make_pipeline: makes a pipeline of Beam, with its options.
      folder: of the answers until they are read, on storage that all workers share.

    Raises:
      SluiceError: as the function raised it.
      Exception: as the runner explains what else fails.
    """
    import apache_beam as beam

    with make_pipeline() as pipeline:
        # Of several elements, Create gives each worker some.
        indexed = pipeline | beam.Create([*enumerate(items)])
        indexed | beam.Map(_answer, function, folder)
    paths = [_path(folder, index) for index in range(len(items))]
    answers = [pickle.loads(storage_for(path).read(path)) for path in paths]
    for answer in answers:
        if isinstance(answer, SluiceError):
            raise answer
    return answers


def _answer(
    item: tuple[int, _Item], function: Callable[[_Item], object], folder: str
) -> None:
    """Writes an answer; what it raises is one if it is meant for the user."""
    try:
        answer = function(item[1])
    except SluiceError as error:
        answer = error
    path = _path(folder, item[0])
    storage_for(path).write_atomically(path, pickle.dumps(answer))


def _path(folder: str, index: int) -> str:
    return os.path.join(folder, f"{index}.answer")
