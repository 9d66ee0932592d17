from __future__ import annotations

from importlib.resources import files
from typing import Final, NamedTuple

from bigcrawl import plots

PAGE: Final = "index.html"
TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
}
# Nothing is loaded from elsewhere, inline scripts do not run, and no other page can embed it.
CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)


class StaticFile(NamedTuple):
    content_type: str
    body: bytes


def page_files() -> dict[str, StaticFile]:
    found = {
        f"/{entry.name}": StaticFile(TYPES[entry.name[entry.name.rindex(".") :]], entry.read_bytes())
        for entry in files(__package__).joinpath("page").iterdir()
        if entry.is_file()
    }
    found["/plots.js"] = StaticFile(TYPES[".js"], plots.script().encode())
    found["/plots.css"] = StaticFile(TYPES[".css"], plots.style().encode())
    return found
