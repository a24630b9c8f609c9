"""What the fake of Vertex AI checks in requests: messages, labels, queries, filters."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from google.protobuf import json_format

Json = dict[str, Any]

PLACE = re.compile(r"/v1/(projects/[^/]+/locations/[^/:]+)/(.+)")
COMMON_QUERY = {"$alt"}
_LIST_QUERY = {"filter", "pageSize", "pageToken", "orderBy", "readMask"}
_LABEL = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_LABEL_VALUE = re.compile(r"[a-z0-9_-]{0,63}")


class Refused(Exception):
    """The service's answer is an error.

    Attributes:
      status: of HTTP.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def checked(type_name: str, data: Json) -> Json:
    """Returns a message in the service's form; unknown fields are refused."""
    from google.cloud.aiplatform_v1 import types

    kind = getattr(types, type_name)
    try:
        message = json_format.ParseDict(data, kind.pb()())
    except json_format.ParseError as error:
        raise Refused(400, f"Invalid JSON payload received. {error}") from error
    return json_format.MessageToDict(message)


def requested(type_name: str, data: Json, output_only: Iterable[str]) -> Json:
    """Returns the message of a request, which must not have some fields."""
    found = checked(type_name, data)
    for key in output_only:
        if key in found:
            raise Refused(400, f"{type_name}.{key} is output only")
    for key, value in found.get("labels", {}).items():
        if not (_LABEL.fullmatch(key) and _LABEL_VALUE.fullmatch(value)):
            raise Refused(400, f"the label {key}={value} is not valid")
    return found


def only(query: Json, known: set[str]) -> None:
    """Refuses unknown parameters."""
    if unknown := sorted(set(query) - known):
        raise Refused(400, f'Invalid JSON payload received. Unknown name "{unknown}"')


def page(key: str, items: Iterable[Json], query: Json, size: int) -> Json:
    """Returns a page of a listing, of those that match the filter."""
    only(query, COMMON_QUERY | _LIST_QUERY)
    found = list(filter(_filter(query.get("filter", "")), items))
    order = query.get("orderBy", "")
    if order not in ("", "create_time desc", "create_time"):
        raise Refused(400, f"order_by {order!r} is not supported")
    if order == "create_time desc":
        found.reverse()
    start = int(query.get("pageToken", 0))
    size = min(size, int(query.get("pageSize") or size))
    answer: Json = {key: found[start : start + size]}
    if start + size < len(found):
        answer["nextPageToken"] = str(start + size)
    return answer


def _filter(text: str) -> Callable[[Json], bool]:
    """Returns a filter: equalities that are joined by AND."""
    wanted = []
    for part in filter(None, re.split(r"\s+AND\s+", text)):
        match = re.fullmatch(r'(labels\.)?([\w-]+)\s*=\s*"([^"]*)"', part.strip())
        if match is None:
            raise Refused(400, f"Invalid filter: {part}")
        wanted.append(match.groups())

    def matches(item: Json) -> bool:
        return all(
            (item.get("labels", {}) if is_label else item).get(
                key if is_label else camel(key)
            )
            == value
            for is_label, key, value in wanted
        )

    return matches


def camel(path: str) -> str:
    """Returns a field's name in JSON."""
    first, *rest = path.split("_")
    return first + "".join(word.title() for word in rest)
