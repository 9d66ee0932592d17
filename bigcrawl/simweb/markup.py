"""HTML around the links: pages of realistic size, with what real pages have to mislead a parser."""

from __future__ import annotations

from html import escape
from random import Random
from typing import Final

# A page is at least as long as its drawn size, and one paragraph and the frame around it longer: 5-25 KB.
_BYTES_MIN, _BYTES_MAX = 5_000, 23_000
_PARAGRAPHS: Final = 64
_SENTENCES_MAX: Final = 7

_WORDS: Final = """
the a of and to in is that it was for on are with as by at from this which river stone garden market
harbour winter bridge letter window morning paper engine valley number teacher station village copper
signal mirror ladder orchard weather meadow lantern history measure journey island pepper cotton quarry
timber canal wrote found carried opened counted followed measured repaired painted watched borrowed
returned gathered narrow early quiet common steady bright hollow distant ordinary careful northern old
new small large café naïve Zürich façade smörgås because although before after between against during
without never often always
""".split()  # noqa: SIM905 - a list of a hundred literals is no easier to read

# Links nobody can fetch over HTTP.
_DEAD_ENDS: Final = (
    "mailto:someone@example.org",
    "javascript:void(0)",
    "tel:+441632960000",
    "data:text/plain,nothing",
    "http://[not-an-address/",
)

_ANCHORS: Final = (
    '<a href="{}">{}</a>',
    "<a class=more href='{}'>{}</a>",
    '<A TITLE="{1}" HREF="{0}">{1}</A>',
)


def paragraph_pool(seed: int) -> tuple[str, ...]:
    """The paragraphs from which all pages of one web are put together: joining beats writing a page anew."""
    rng = Random(f"{seed}/paragraphs")
    return tuple(_paragraph(rng) for _ in range(_PARAGRAPHS))


def _paragraph(rng: Random) -> str:
    sentences = (
        " ".join(rng.choices(_WORDS, k=rng.randint(6, 20))).capitalize() + "."
        for _ in range(rng.randint(2, _SENTENCES_MAX))
    )
    return f"<p>{' '.join(sentences)}</p>\n"


def render_page(rng: Random, title: str, base: str | None, hrefs: list[str], pool: tuple[str, ...]) -> bytes:
    """An HTML page with the given links (not yet escaped), in order, spread over its text."""
    areas: list[str] = []
    parts = [_head(title, base), f"<body>\n<h1>{title}</h1>\n"]
    for href in hrefs:
        drawn = rng.random()
        if drawn < 0.06:
            areas.append(f'<area shape="rect" coords="0,0,9,9" alt="" href="{escape(href)}">\n')
        elif drawn < 0.1:
            parts.append(f'<iframe src="{escape(href)}" width="300" height="200"></iframe>\n')
        else:
            parts.append(rng.choice(_ANCHORS).format(escape(href), " ".join(rng.choices(_WORDS, k=2))))
            parts.append("\n" if drawn < 0.6 else rng.choice(pool))
    parts += _misleading(rng)
    parts.append(f'<img src="/assets/map.png" usemap="#plan" alt=""><map name="plan">\n{"".join(areas)}</map>\n')
    _fill(parts, rng, pool)
    parts.append("</body></html>\n")
    return "".join(parts).encode()


def render_frameset(rng: Random, title: str, base: str | None, hrefs: list[str], pool: tuple[str, ...]) -> bytes:
    """A page of frames; what it says to a browser without frames holds no links."""
    frames = "".join(f'<frame src="{escape(href)}">\n' for href in hrefs)
    parts = [_head(title, base), f'<frameset cols="*,*">\n{frames}<noframes>\n']
    _fill(parts, rng, pool)
    parts.append("</noframes></frameset></html>\n")
    return "".join(parts).encode()


def render_text(rng: Random, pool: tuple[str, ...]) -> bytes:
    """Plain text that looks like HTML: none of its links counts."""
    parts = ['Notes. <a href="/phantom/notes.html">Not a link</a>\n']
    _fill(parts, rng, pool)
    return "".join(parts).encode()


def render_notice(status: int, href: str | None = None) -> bytes:
    """The short page that goes with an error or a redirect."""
    link = f'<p><a href="{escape(href)}">here</a></p>' if href else ""
    return f"<!DOCTYPE html>\n<html><head><title>{status}</title></head><body>{link}</body></html>\n".encode()


def _head(title: str, base: str | None) -> str:
    base_element = f'<base href="{escape(base)}">\n' if base else ""
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">\n{base_element}'
        f'<title>{title}</title>\n<link rel="stylesheet" href="/assets/style-0.css">\n</head>\n'
    )


def _misleading(rng: Random) -> list[str]:
    """What looks like a link and is none: a crawler that fetches a phantom has read the page wrongly."""
    number = rng.randrange(1000)
    return [
        f'<!-- <a href="/phantom/comment-{number}.html">withdrawn</a> -->\n',
        f"<script>var more = '<a href=\"/phantom/script-{number}.html\">more<\\/a>';</script>\n",
        f'<a href="{rng.choice(_DEAD_ENDS)}">contact</a> <a name="part-{number}">here</a>\n',
    ]


def _fill(parts: list[str], rng: Random, pool: tuple[str, ...]) -> None:
    wanted = rng.randint(_BYTES_MIN, _BYTES_MAX)
    # Counted in characters: the few letters of two bytes only make a page a little longer.
    length = sum(map(len, parts))
    while length < wanted:
        parts.append(rng.choice(pool))
        length += len(parts[-1])
