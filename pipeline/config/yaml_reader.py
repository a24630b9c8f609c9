"""Reads YAML 1.2 as plain data, with the line of every key.

``1e-3`` is a number, ``010`` is ten, ``on``, ``no`` and ``2024-01-31`` are strings.
Rejects duplicate keys, keys that are not strings, merge keys (``<<``), all tags, and
other versions of YAML.
"""

from __future__ import annotations

from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.reader import ReaderError
from ruamel.yaml.resolver import VersionedResolver
from ruamel.yaml.scanner import Scanner

from pipeline.config.origin import KeyPath, key_path
from pipeline.config.yaml_values import describe
from sluice.errors import ConfigError

_MAX_BYTES = 1_000_000
MAX_DEPTH = 50
_MAX_VALUES = 10_000

_TAG = "tag:yaml.org,2002:"
_SCALAR_TAGS = {_TAG + name for name in ("null", "bool", "int", "float", "str")}
# What to do about an error of the parser, by a part of its text.
_HINTS = (
    ("'\\t'", "indent with spaces"),
    ("alias", "put a value that begins with * into quotes"),
    ("anchor", "put a value that begins with & into quotes"),
)


class _Resolver(VersionedResolver):
    """YAML 1.2's scalars; a date, ``1_000`` and ``<<`` are strings."""

    def resolve(self, kind: Any, value: Any, implicit: Any) -> Any:
        tag = super().resolve(kind, value, implicit)
        if kind is ScalarNode and (str(tag) not in _SCALAR_TAGS or "_" in value):
            return self.DEFAULT_SCALAR_TAG
        return tag


class _Scanner(Scanner):
    """Rejects tags, and versions of YAML that read scalars differently."""

    def scan_tag(self) -> Any:
        token = super().scan_tag()
        name = "".join(part for part in token.value if part)
        raise _UnsupportedYaml(f"the tag {name!r}", token.start_mark, "quote the value")

    def scan_yaml_directive_value(self, start_mark: Any) -> Any:
        version = super().scan_yaml_directive_value(start_mark)
        if version != (1, 2):
            name = "%YAML {}.{}".format(*version)
            raise _UnsupportedYaml(
                name, start_mark, "write YAML 1.2, without this line"
            )
        return version


class _UnsupportedYaml(Exception):
    """YAML that a config may not use; its arguments: what, where, and a hint."""


class YamlReader:
    """Reads YAML as plain data, noting the location of each key path.

    Attributes:
      shown: the name of the text in error messages.
      locations: ``file:line`` by key path; ``shown`` alone if there are no lines.
    """

    def __init__(self, shown: str, *, lines: bool = True) -> None:
        self.shown = shown
        self.locations: dict[KeyPath, str] = {}
        self._lines = lines
        self._values = 0
        self._yaml = YAML(typ="safe", pure=True)
        self._yaml.Resolver = _Resolver
        self._yaml.Scanner = _Scanner

    def read(self, text: str, path: KeyPath = ()) -> Any:
        """Returns the data of a YAML text that is at a key path of the config.

        Raises:
          ConfigError: it is not YAML, or uses something that this module rejects.
        """
        if len(text) > _MAX_BYTES:
            raise ConfigError(
                "the config is too large",
                where=self.shown,
                expected=f"at most {_MAX_BYTES:,} characters",
                actual=f"{len(text):,}",
            )
        try:
            node = self._yaml.compose(text)
        except _UnsupportedYaml as error:
            what, mark, hint = error.args
            raise ConfigError(
                f"{what} is not supported", where=self._location(mark), hint=hint
            ) from error
        except (YAMLError, ValueError, OverflowError) as error:
            raise self._syntax_error(error, text) from error
        except RecursionError as error:
            raise self._too_complex(self.shown) from error
        return None if node is None else self._value(node, path, depth=0)

    def _syntax_error(self, error: Exception, text: str) -> ConfigError:
        if isinstance(error, ReaderError):
            line = text.count("\n", 0, error.position) + 1
            return ConfigError(
                "this is not valid YAML",
                where=f"{self.shown}:{line}" if self._lines else self.shown,
                actual=f"a control character, 0x{error.character:02x}",
            )
        mark = getattr(error, "problem_mark", None)
        begin = getattr(error, "context_mark", None)
        found = [getattr(error, "context", None)]
        if begin and mark and begin.line != mark.line:
            found[0] = f"{found[0]} that begins on line {begin.line + 1}"
        # An escape beyond Unicode is an error without a mark.
        found.append(getattr(error, "problem", str(error)))
        actual = ", ".join(part for part in found if part)
        column = f", column {mark.column + 1}" if mark and self._lines else ""
        return ConfigError(
            "this is not valid YAML",
            where=f"{self._location(mark)}{column}",
            actual=actual,
            hint=next((hint for sign, hint in _HINTS if sign in actual), None),
        )

    def _too_complex(self, where: str) -> ConfigError:
        return ConfigError(
            "the YAML is nested too deeply, or has too many values",
            where=where,
            expected=f"at most {MAX_DEPTH} levels and {_MAX_VALUES} values",
            hint="look for an alias (*name) inside the value that it stands for",
        )

    def _location(self, mark: Any) -> str:
        return f"{self.shown}:{mark.line + 1}" if mark and self._lines else self.shown

    def _value(self, node: Node, path: KeyPath, depth: int) -> Any:
        location = self._location(node.start_mark)
        self.locations.setdefault(path, location)
        self._values += 1
        if depth > MAX_DEPTH or self._values > _MAX_VALUES:
            raise self._too_complex(location)
        if isinstance(node, MappingNode):
            return self._mapping(node, path, depth)
        if isinstance(node, SequenceNode):
            return [
                self._value(item, (*path, index), depth + 1)
                for index, item in enumerate(node.value)
            ]
        return self._scalar(node)

    def _mapping(self, node: MappingNode, path: KeyPath, depth: int) -> dict:
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            location = self._location(key_node.start_mark)
            key = self._scalar(key_node) if isinstance(key_node, ScalarNode) else None
            if not isinstance(key, str):
                raise ConfigError(
                    "a key is not a string",
                    where=location,
                    actual=None if key is None else describe(key),
                    hint=f'quote it: "{key_node.value}"'
                    if isinstance(key_node, ScalarNode)
                    else None,
                )
            if key == "<<" and key_node.style is None:
                raise ConfigError(
                    "merge keys (<<) are not supported",
                    where=location,
                    hint="write the keys out; an alias can stand for a whole value, "
                    "such as 'train: *train'",
                )
            here = (*path, key)
            if key in result:
                raise ConfigError(
                    f"the key {key_path(here)} is given twice",
                    where=location,
                    actual=f"it is already at {self.locations[here]}",
                    hint="keep one of them",
                )
            self.locations[here] = location
            result[key] = self._value(value_node, here, depth + 1)
        return result

    def _scalar(self, node: Node) -> Any:
        try:
            return self._yaml.constructor.construct_object(node)
        except (YAMLError, ValueError) as error:
            raise ConfigError(
                "this value cannot be parsed",
                where=self._location(node.start_mark),
                actual=describe(node.value),
                hint="quote it",
            ) from error
