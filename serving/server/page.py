"""The page at ``/``: asks a served model in the browser, without a network.

Its form is made of ``/about``: the inputs of a signature, with what our models say of
their features in ``assets.extra``; of other models the signature alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from serving.server.core import Core
from serving.server.models import LoadedVersion
from serving.signatures import EXAMPLES, VALUES

_STATIC = Path(__file__).parent / "static"
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self' blob: data:; form-action 'none'; base-uri 'none'; "
        "frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
}


def page_routes(core: Core) -> list[BaseRoute]:
    """Returns the addresses of the page."""

    async def page(request: Request) -> Response:
        return FileResponse(_STATIC / "page.html", headers=_HEADERS)

    async def about(request: Request) -> Response:
        loaded = {name: model.loaded for name, model in core.models.items()}
        return JSONResponse({name: x and _about(x) for name, x in loaded.items()})

    static = StaticFiles(directory=_STATIC)
    return [Route("/", page), Route("/about", about), Mount("/static", static)]


def _about(version: LoadedVersion) -> dict[str, Any]:
    servable, facts = version.servable, version.servable.facts
    has_values = VALUES in servable.signature_defs
    signature = servable.signature(VALUES if has_values else EXAMPLES)
    kinds = facts.get("features.json", {}).get("features", {})
    classes = facts.get("classes.json", {})
    known = {item["input"]: x for x, item in classes.get("features", {}).items()}
    inputs = []
    for name, spec in signature.inputs.items():
        feature = known.get(name, name)
        item = classes.get("features", {}).get(feature, {})
        one = {"input": name, "feature": feature, "dtype": spec.dtype.name}
        rank = spec.shape.rank
        one["kind"] = kinds.get(feature, {}).get("kind")
        inputs.append({**one, "required": item.get("required"), "rank": rank})
    return {
        "version": servable.version,
        "signature": signature.name,
        "inputs": inputs,
        "classes": classes.get("classes"),
        "targets": classes.get("targets"),
    }
