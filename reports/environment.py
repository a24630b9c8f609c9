"""The Jinja environment of the pages, and the parts that all of them have.

Values are escaped, and made visible, wherever a template shows them. A page has one
style sheet and one script, both inline, and a content-security policy with their
hashes: no other script runs, nothing is loaded.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping
from functools import cache
from inspect import isfunction
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from reports import formats
from reports.charts.lines import SHAPES
from reports.feature_statistics import kind_of
from reports.tables import Column, Mark, Table, numbers
from sluice.record.states import NODE_STATES, NODE_TONES, RUN_TONES

TEMPLATES = Path(__file__).parent / "templates"


@cache
def environment() -> Environment:
    """Returns the environment; templates are compiled at their first use."""
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    own = {name: item for name, item in vars(formats).items() if isfunction(item)}
    made.filters |= {**own, "kind_of": kind_of, "pick": pick}
    made.globals |= {
        "Column": Column,
        "Mark": Mark,
        "MISSING": formats.MISSING,
        "NODE_STATES": NODE_STATES,
        "NODE_TONES": NODE_TONES,
        "POINT_SHAPES": SHAPES,
        "RUN_TONES": RUN_TONES,
        "Table": Table,
        "numbers": numbers,
        "size": formats.size,
    }
    made.globals["ui"] = made.get_template("macros.html.j2").module
    return made


def pick(rows: Iterable[Any], *names: str) -> list[list[Any]]:
    """Returns some fields of documents or of objects, such as for rows of a table."""
    mappings = (row if isinstance(row, Mapping) else vars(row) for row in rows)
    return [[values[name] for name in names] for values in mappings]


def render_page(template: str, **values: Any) -> str:
    """Returns a page: a template that extends ``page.html.j2``."""
    style, script = inline("page.css.j2"), inline("page.js")
    policy = (
        "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; "
        f"style-src '{_hash(style)}'; script-src '{_hash(script)}'"
    )
    return (
        environment()
        .get_template(template)
        .render(style=Markup(style), script=Markup(script), policy=policy, **values)
    )


@cache
def inline(name: str) -> str:
    """Returns the style sheet or the script, which no value changes."""
    return environment().overlay(autoescape=False).get_template(name).render()


def _hash(text: str) -> str:
    """Returns the source of a content-security policy that allows an element."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def _shown(value: Any) -> Any:
    """Makes text from data or config visible; see ``formats.visible``."""
    if value is None:
        return formats.MISSING
    return value if isinstance(value, Markup) else formats.visible(value)
