"""Base class of config sections, and types of values with bounds.

A message that begins with "Input should be" is shown as what was expected.
"""

from __future__ import annotations

import json
import re
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal, NoReturn, TypeVar

from annotated_types import Ge, Gt, Le, MinLen
from pydantic import (
    AfterValidator,
    AllowInfNan,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError

from sluice.errors import did_you_mean
from sluice.storage.storage import is_remote

Classes = tuple[int, ...] | tuple[str, ...]
Slice = dict[str, int | str] | tuple[str, ...]

# https://cloud.google.com/storage/docs/buckets#naming
BUCKET_ADDRESS = r"gs://[a-z0-9][a-z0-9._-]{1,220}[a-z0-9](/.*)?"
_NAME = r"[a-z0-9][a-z0-9-]{0,127}"


class Section(BaseModel):
    """Base class of the config's mappings: frozen, and without unknown keys.

    The string below a key is its description, in the reference and the JSON schema.
    """

    # Built at first use, as parts of Config; building each by itself takes 0.1 s. So
    # a section is no default as ``Section()``, but as ``Section.model_construct()``.
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    @model_validator(mode="before")
    @classmethod
    def _has_known_keys(cls, given: Any) -> Any:
        fields = cls.model_fields.items()
        known = [info.alias or name for name, info in fields]
        for key in given if isinstance(given, dict) else ():
            if key not in known and key not in cls.model_fields:
                nearest = did_you_mean(key, known) or f"known are {', '.join(known)}"
                refuse(f"unknown key {key!r}: {nearest}", key)
        return given


def expect(wanted: str) -> NoReturn:
    """Rejects the value that a validator is checking."""
    raise PydanticCustomError(
        "expected", "Input should be {wanted}", {"wanted": wanted}
    )


def refuse(message: str, *key: str | int) -> NoReturn:
    """Rejects keys that do not fit together, in a validator of the section they are in.

    Args:
      message: one sentence, shown as it is.
      key: the path, below the section, of the key that it speaks of.
    """
    raise PydanticCustomError("refused", message, {"key": key})


def _not_empty(value: Any) -> Any:
    if not value:
        expect("at least one")
    return value


def matching(regex: str, wanted: str) -> AfterValidator:
    """Returns a validator of strings that a regular expression matches as a whole."""

    def check(value: str) -> str:
        if not re.fullmatch(regex, value, re.ASCII):
            expect(wanted)
        return value

    return AfterValidator(check)


def shorthand(key: str, section: type[Section]) -> BeforeValidator:
    """Returns a validator that takes a string as a section with this key alone."""

    def complete(value: Any) -> Any:
        return {key: value} if isinstance(value, str) else value

    return BeforeValidator(complete, json_schema_input_type=Text | section)


def _pattern(value: str) -> str:
    path = PurePosixPath(value)
    if not value or path.is_absolute() or ".." in path.parts:
        expect("a file pattern below data.dir, such as 'train-*', without '..'")
    return value


def _directory(value: str) -> str:
    if is_remote(value) and not re.fullmatch(BUCKET_ADDRESS, value):
        expect("a directory of this machine, or in a bucket, such as gs://my-bucket/a")
    return value


def _project_path(value: str) -> str:
    if is_remote(value):
        expect("a path of this machine, to which the file has been copied")
    return value


def _whole(value: Any) -> Any:
    # A literal 1 takes true and 1.0, too.
    return value if type(value) is int else expect("1 (gray), 3 (RGB) or 4 (RGBA)")


def _classes(value: Any) -> Classes | None:
    if value is None:
        return None
    kinds = {type(item) for item in value} if isinstance(value, list | tuple) else set()
    if kinds not in ({int}, {str}):
        expect("a list of whole numbers or a list of strings")
    if len(value) < 2 or len(set(value)) != len(value):
        expect("at least 2 classes, each of them once")
    return tuple(value)


def _slice(value: Any) -> Slice | None:
    if value is None:
        return None
    if isinstance(value, dict) and value:
        if all(type(item) in (int, str) for item in value.values()):
            return dict(value)
    elif value and isinstance(value, list | tuple) and {*map(type, value)} == {str}:
        return tuple(value)
    expect("such as {payment_type: Cash}, or [payment_type] for each of its values")


def _json(value: Any) -> Any:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        expect("strings, booleans, and finite numbers only")
    return value


# No ``Field`` in a named type: pydantic 2.10 stores the default of an attribute of that
# type in the ``Field``, and gives it to the others.
_Value = TypeVar("_Value")
# Not MinLen, which adds a second error if an item is invalid.
NotEmpty = Annotated[_Value, AfterValidator(_not_empty)]
Text = Annotated[StrictStr, MinLen(1)]
ProjectPath = Annotated[Text, AfterValidator(_project_path)]
Flag = StrictBool
Count = Annotated[StrictInt, Ge(1)]
WholeNumber = Annotated[StrictInt, Ge(0)]
Number = Annotated[StrictFloat, AllowInfNan(False)]
PositiveNumber = Annotated[Number, Gt(0)]
NotNegative = Annotated[Number, Ge(0)]
Fraction = Annotated[Number, Ge(0), Le(1)]
JsonValue = Annotated[Any, AfterValidator(_json)]
Params = dict[str, JsonValue]
PipelineName = Annotated[
    StrictStr,
    WithJsonSchema({"type": "string", "pattern": f"^{_NAME}$"}),
    matching(
        _NAME,
        "1 to 128 lower-case letters, digits and hyphens, the first not a hyphen "
        "(Kubeflow's rule)",
    ),
]
Pattern = Annotated[StrictStr, AfterValidator(_pattern)]
Directory = Annotated[Text, AfterValidator(_directory)]
Pixels = Annotated[StrictInt, Ge(1), Le(4096)]
Channels = Annotated[Literal[1, 3, 4], BeforeValidator(_whole)]
# Not PlainValidator, whose tuples pydantic 2.10 warns of when it writes JSON.
ClassList = Annotated[Classes | None, BeforeValidator(_classes)]
SliceSpec = Annotated[Slice | None, BeforeValidator(_slice)]
