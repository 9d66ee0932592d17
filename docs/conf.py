"""The pages of docs/ as a site: `make site`. A warning, a link that leads nowhere for instance, is an error there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bigcrawl import __version__

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "bigcrawl"
copyright = "the bigcrawl developers"  # noqa: A001 - Sphinx's own name
release = version = __version__
extensions = ["myst_parser"]
myst_heading_anchors = 4  # links name headings as the common hosts do
highlight_language = "none"
html_theme = "furo"
html_show_sourcelink = False

# The pages by reader; all that are not named are guides. Pages stay plain Markdown, so what Sphinx wants to be told
# stands here and not on them.
CONTENTS = {
    "Guides": [
        *(
            "guide/focused",
            "guide/site",
            "guide/recrawl",
            "guide/sitemap",
            "guide/feeds",
            "guide/sample",
            "guide/filters",
        ),
        *("guide/priorities", "budgets", "robots", "crowds", "alone", "drum", "simweb"),
    ],
    "Operate": ["operations", "scrapyd", "containers", "commands"],
    "Reference": ["settings", "stats", "redis-keys", "file-formats", "imports", "glossary"],
    "Design": ["architecture", "life-of-a-url"],
    "Results": ["performance", "drum-cost", "spam"],
}


_named = {"index", *(name for names in CONTENTS.values() for name in names)}
CONTENTS["Guides"] += sorted({path.stem for path in Path(__file__).parent.glob("*.md")} - _named)
CONTENTS["Guides"] += sorted({f"guide/{path.stem}" for path in Path(__file__).parent.glob("guide/*.md")} - _named)
CONTENTS["Design"] += sorted(f"design/{path.stem}" for path in Path(__file__).parent.glob("design/*.md"))


def add_contents(_: Sphinx, page: str, source: list[str]) -> None:
    """Add the tables of contents that Sphinx reads from its pages; decisions stand below the architecture."""
    if page == "index":
        for title, names in CONTENTS.items():
            lines = "\n".join(names)
            source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {title}\n\n{lines}\n```\n"
    elif page == "architecture":
        source[0] += "\n```{toctree}\n:hidden:\n:glob:\n\ndecisions/*\n```\n"


def setup(app: Sphinx) -> None:
    """What Sphinx calls."""
    app.connect("source-read", add_contents)
