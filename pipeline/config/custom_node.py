"""Config section ``nodes``: the user's own TFX components."""

from __future__ import annotations

from typing import Annotated

from pydantic import StrictStr

from sluice.config_section import Params, Section, Text, matching

NodeName = Annotated[
    StrictStr,
    matching(
        r"[A-Z][A-Za-z0-9_]{0,62}",
        "1 to 63 letters, digits and underscores, the first an upper-case letter",
    ),
]
Source = Annotated[
    StrictStr,
    matching(r"\w+\.\w+", "an output of a node, such as TFRecordGen.examples"),
]


class CustomNode(Section):
    """A node that is added to the graph."""

    component: Text
    """A TFX component, `package.module:Class`, or a function with `@component`."""
    inputs: dict[Text, Source] = {}
    """What it reads, by input: `<node>.<output>`, such as `{examples:
    TFRecordGen.examples}`."""
    parameters: Params = {}
    """Its other arguments; a mapping where the component takes a proto."""
    after: tuple[Text, ...] = ()
    """Nodes that it waits for without reading their outputs."""
    before: tuple[Text, ...] = ()
    """Nodes that wait for it, and do not run if it fails."""


OwnNodes = dict[NodeName, CustomNode]
