"""Tells what libraries say in the log of a node from what a reader looks for.

TensorFlow, Beam and Python's ``warnings`` write dozens of lines into every log, of
which none is an error. Tracebacks, and what nodes and user code print, are kept.
"""

from __future__ import annotations

import re

# The lines of one message, with the line break of its last.
_OF_LIBRARIES = re.compile(
    r"""
    ^(?:
      # Python's logging, with the lines that follow a deprecation of TensorFlow.
      (?:WARNING|INFO|DEBUG):(?:absl|apache_beam|google|h5py|jax|tensorflow|tfx)
        [\w.]*:.*(?:\nInstructions\ for\ updating:\n.*(?:\n`.*)*)?
      # Its warnings in installed packages, with the line of source that is shown.
    | (?:/.*/lib/python3|<frozen\ ).*:\d+:\ \w*Warning:\ .*
        (?:\n\ \ (?!File\ ").*)?
      # The C++ libraries: below errors, or about a second copy of a CUDA library.
    | (?:\d{4}-\d\d-\d\d\ [\d:.]+:\ [IW]\ |[IW]\d{4}\ \d\d:\d\d:).*
    | (?:\d{4}-\d\d-\d\d\ [\d:.]+:\ E\ |E\d{4}\ ).*Unable\ to\ register\ cu.*
    | WARNING:\ All\ log\ messages\ before\ absl::InitializeLog.*
    | To\ enable\ the\ following\ instructions:.*
    )(?:\n|\Z)
    """,
    re.MULTILINE | re.VERBOSE,
)
_ERROR = re.compile(
    r"(?:ERROR|CRITICAL|FATAL)\b|Traceback \(most recent call last\)|Fatal Python error"
    r"|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+: [EF] |[EF]\d{4} \d\d:\d\d:"
    r"|(?:\w+\.)*\w*(?:Error|Exception|Interrupt)(?::|$)"
)


def without_library_lines(text: str) -> str:
    """Returns the lines of a log without warnings and notices of libraries."""
    return _OF_LIBRARIES.sub("", text)


def is_error(line: str) -> bool:
    """Whether a line says that something has failed, or begins a traceback."""
    return _ERROR.match(line) is not None
