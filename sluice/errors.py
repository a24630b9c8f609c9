"""Error classes with hints, and the exit code of each.

Every error says what is wrong, where (file, key, record, feature), the expected and
the actual value, and what to do next. A traceback is shown only with ``-v``; it is
always in the log file. Any other exception is a bug of Sluice and exits with 1.
"""

from __future__ import annotations

import difflib
import functools
import json
import re
from collections.abc import Iterable, Sequence
from enum import IntEnum

MAX_EXAMPLES = 5
# Colours and the like ("select graphic rendition"), which move nothing.
_KEPT = re.compile(r"(\x1b\[[0-9;:]*m|[\n\t])")
# A word or a quoted text, such as a value that somebody has given; not a path.
_LONG = re.compile(r"([^\s/'\"]{200})[^\s/'\"]+|((?<!\w)'[^']{200})[^']+(?=')")


class ExitCode(IntEnum):
    """Exit codes of the command line. Part of the public interface."""

    DONE = 0
    BUG = 1
    USAGE = 2
    DATA = 3
    MODEL = 4
    SERVING = 5
    LOCKED = 6
    NODE = 7
    REMOTE = 8
    INTERRUPTED = 130
    TERMINATED = 143


class SluiceError(Exception):
    """An error that is explained to the user on one screen.

    Its text has one line per attribute and example. Line breaks and control characters
    in them, such as those of a feature's name, are escaped, and long values are cut.

    Attributes:
      what: one sentence: what is wrong.
      where: the file, key path, node or URI of the problem.
      details: lines to print below it, such as those of another error.
      examples: occurrences, in order; only the first five are printed.
      expected: what would be right.
      actual: what was found.
      hint: the next command, or another remedy.
      exit_code: exit code of the process.
    """

    exit_code: ExitCode = ExitCode.BUG

    def __init__(
        self,
        what: str,
        *,
        where: object | None = None,
        details: Sequence[str] = (),
        examples: Sequence[str] = (),
        expected: str | None = None,
        actual: str | None = None,
        hint: str | None = None,
    ) -> None:
        self.what = what
        self.where = None if where is None else str(where)
        self.details = tuple(details)
        self.examples = tuple(examples)
        self.expected = expected
        self.actual = actual
        self.hint = hint
        super().__init__(str(self))

    def __str__(self) -> str:
        lines = [self.what, *self.details]
        if self.where:
            lines.append(f"  where:    {self.where}")
        if self.expected:
            lines.append(f"  expected: {self.expected}")
        if self.actual:
            lines.append(f"  found:    {self.actual}")
        lines += [f"  - {line}" for line in bounded(self.examples)]
        if self.hint:
            lines.append(f"  try:      {self.hint}")
        return "\n".join(printable(shorten(line)) for line in lines)

    @classmethod
    def from_text(cls, text: str) -> SluiceError:
        """Returns an error with the text of another one."""
        what, *details = text.split("\n")
        return cls(what, details=details)

    def __reduce__(self):
        state = {
            key: getattr(self, key)
            for key in ("where", "details", "examples", "expected", "actual", "hint")
        }
        return functools.partial(type(self), self.what, **state), ()


def bounded(examples: Sequence[str], limit: int = MAX_EXAMPLES) -> list[str]:
    """Returns the first ``limit`` lines and, if there are more, their number."""
    shown = list(examples[:limit])
    if len(examples) > limit:
        shown.append(f"and {len(examples) - limit} more")
    return shown


class UsageError(SluiceError):
    """The command, a path or the workspace is not usable."""

    exit_code = ExitCode.USAGE


class ConfigError(UsageError):
    """The pipeline's config, schema or profile is wrong."""


class WorkspaceError(UsageError):
    """The workspace cannot be read, written or understood."""


class DataError(SluiceError):
    """The data is damaged or invalid, or the data gate has failed."""

    exit_code = ExitCode.DATA


class GateError(DataError):
    """A gate has failed: the run is ``blocked``, not ``failed``.

    A custom node is a gate if it raises this.
    """


class RetiredModelError(GateError):
    """A model was retired after it had been blessed, so it is not pushed."""

    exit_code = ExitCode.MODEL


class ServingError(SluiceError):
    """A push failed, or a served model is damaged."""

    exit_code = ExitCode.SERVING


class LockedError(SluiceError):
    """Another process holds a lock that this one needs."""

    exit_code = ExitCode.LOCKED


class NodeError(SluiceError):
    """A node of the pipeline failed: user code, memory, disk."""

    exit_code = ExitCode.NODE


class RemoteError(SluiceError):
    """A service in the cloud refuses a request, or does not answer."""

    exit_code = ExitCode.REMOTE


def did_you_mean(word: object, known: Iterable[object]) -> str | None:
    """Returns a hint with the known name that is most similar to a word, or None."""
    names = {str(name).casefold(): str(name) for name in known}
    close = difflib.get_close_matches(str(word).casefold(), names, n=1, cutoff=0.5)
    return f"did you mean {names[close[0]]!r}?" if close else None


def unknown_node(node: str, known: Sequence[str], where: object) -> UsageError:
    """Returns the error for an unknown node, with the most similar known one."""
    return UsageError(
        f"there is no node {node!r}",
        where=where,
        expected="one of " + ", ".join(known) if known else None,
        hint=did_you_mean(node, known),
    )


def shorten(text: str) -> str:
    """Returns text with its long words and quoted texts cut at 200 characters."""
    return _LONG.sub(lambda match: f"{match[1] or match[2]}...", text)


def printable(text: str) -> str:
    """Returns text as one line, with what would disturb a terminal escaped."""
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)


def printable_output(text: str) -> str:
    """Returns a program's output with lines, tabs and colours; the rest is escaped."""
    parts = _KEPT.split(text)
    return "".join(part if i % 2 else printable(part) for i, part in enumerate(parts))
