"""Whether data that was accepted is still written down: AcceptData has no outputs."""

from __future__ import annotations

from runners.cache.cache_key import NodeFacts

_KIND = "components.accept_data.component.AcceptData"


def still_accepted(facts: NodeFacts) -> bool:
    """Whether the baseline store holds the data that an ``AcceptData`` has accepted.

    It has no outputs that could be looked at. True for every other node.
    """
    if facts.kind != _KIND:
        return True
    from components.accept_data.baseline_store import holds
    from components.tfrecord_gen.report import Report

    try:
        report = Report.load(facts.inputs["quarantine"][0].uri)
        return holds(str(facts.properties["baseline_store"]), report)
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        return False  # The node says it better.
