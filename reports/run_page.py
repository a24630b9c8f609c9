"""The page of a run: one HTML file that needs no network and no server.

``render_run`` draws it from the record alone. Each section is a module of
``reports.sections`` and a template of the same name. To add one:

1. ``reports/sections/<name>.py`` with ``build(run: RunData) -> dict | None``: what is
   computed for the template, or None if the record has nothing for it, and the section
   is absent. Documents come from ``run.documents(kind)``.
2. ``reports/templates/sections/<name>.html.j2``, which gets the values as ``view``, the
   record as ``record``, and the macros as ``ui``: ``ui.table(Table(...))``,
   ``ui.tiles``, ``ui.facts``, ``ui.mark``, ``ui.command``, ``ui.text``. Formats are
   filters: ``{{ size_bytes | size }}``. Colours are CSS variables (``--series-1``,
   ``--muted``, ``--line``): the policy of the page forbids ``style`` attributes.
3. A line in ``SECTIONS``.

A section that raises becomes a notice on the page.
"""

from __future__ import annotations

from pathlib import Path

from markupsafe import Markup

from reports.environment import environment, render_page
from reports.read_run import REPORT_FILE, RunData, read_run
from reports.sections import data, execution, model, training, verdict
from sluice.record.outcome import failed_sections
from sluice.storage.storage import storage_for

SECTIONS = {
    "verdict": verdict.build,
    "model": model.build,
    "data": data.build,
    "training": training.build,
    "run": execution.build,
    "serving": execution.serving,
    "provenance": execution.provenance,
}


def compile_templates() -> None:
    """Compiles all templates; otherwise each is at its first use."""
    for name in environment().list_templates():
        environment().get_template(name)


def render_run(run: RunData) -> str:
    """Returns the page of a run, which may be in progress."""
    drawn = {name: render_section(run, name) for name in SECTIONS}
    sections = {name: html for name, html in drawn.items() if html is not None}
    values = {"record": run.record, "sections": sections, "notices": run.notices}
    failed = failed_sections(run.record)
    return render_page("run.html.j2", failed=failed, **values)


def render_section(run: RunData, name: str) -> Markup | None:
    """Returns the HTML of a section without its heading; None if it is absent.

    One that cannot be drawn is a notice in ``run.notices``, and absent.
    """
    try:
        view = SECTIONS[name](run)
        if view is None:
            return None
        template = environment().get_template(f"sections/{name}.html.j2")
        return Markup(template.render(view=view, record=run.record))
    except Exception as error:
        # A document may be damaged in any way; the other sections are still of use.
        problem = f"{type(error).__name__}: {error}"
        run.notices.append(
            f"the section {name.title()!r} cannot be drawn: a document of the record "
            f"is damaged, or this is a bug: {problem[:500]}"
        )
        return None


def write_report(address: str | Path, target: str | Path | None = None) -> str:
    """Draws the page of a run and writes it atomically.

    Args:
      address: the run's folder, local or in a bucket.
      target: the file; None for ``report.html`` in the run's folder.

    Returns:
      The path or address of the page.

    Raises:
      WorkspaceError: the record cannot be read.
      OSError: the page cannot be written.
    """
    written = str(target or f"{str(address).rstrip('/')}/{REPORT_FILE}")
    with read_run(address) as run:
        page = render_run(run)
    storage_for(written).write_atomically(written, page.encode())
    return written
