"""HTML around the links: pages of realistic size that mislead parsers as real pages do."""

from __future__ import annotations

import re
from bisect import bisect_left
from html import escape
from itertools import accumulate
from random import Random
from typing import Final

# Page sizes by quantile: evenly 5 to 23 KB, or as skewed as on the web, 21 KB on average (IRLbot §7).
EVEN_BYTES: Final = tuple(5_000 + place * 18_000 // 63 for place in range(64))
SKEWED_BYTES: Final = tuple(round(2_700 * 1.0525**place) for place in range(64))

_PARAGRAPHS: Final = 64
_SENTENCES_MAX: Final = 7
# Each template has the size of a page, for each number of links, so more would cost memory.
_VARIANTS: Final = 4

_WORDS: Final = """
the a of and to in is that it was for on are with as by at from this which river stone garden market
harbour winter bridge letter window morning paper engine valley number teacher station village copper
signal mirror ladder orchard weather meadow lantern history measure journey island pepper cotton quarry
timber canal wrote found carried opened counted followed measured repaired painted watched borrowed
returned gathered narrow early quiet common steady bright hollow distant ordinary careful northern old
new small large café naïve Zürich façade smörgås because although before after between against during
without never often always
""".split()  # noqa: SIM905 - a list of a hundred literals is no easier to read

# Links that cannot be fetched over HTTP.
_DEAD_ENDS: Final = (
    "mailto:someone@example.org",
    "javascript:void(0)",
    "tel:+441632960000",
    "data:text/plain,nothing",
    "http://[not-an-address/",
)

_ANCHORS: Final = (
    '<a href="%s">{}</a>',
    "<a class=more href='%s'>{}</a>",
    '<A TITLE="{0}" HREF="%s">{0}</A>',
)


def paragraph_pool(seed: int) -> tuple[str, ...]:
    """Return the paragraphs of all pages of a web; joining them is cheaper than writing text."""
    rng = Random(f"{seed}/paragraphs")
    return tuple(_paragraph(rng) for _ in range(_PARAGRAPHS))


def _paragraph(rng: Random) -> str:
    sentences = (
        " ".join(rng.choices(_WORDS, k=rng.randint(6, 20))).capitalize() + "."
        for _ in range(rng.randint(2, _SENTENCES_MAX))
    )
    return f"<p>{' '.join(sentences)}</p>\n"


class PageWriter:
    """Writes pages: fills a template for the number of links, then adds text to reach the size."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self.pool = paragraph_pool(seed)
        self._text = "".join(self.pool).encode()
        self._starts = [0, *accumulate(len(paragraph.encode()) for paragraph in self.pool)]
        self._templates: dict[tuple[int, int], bytes] = {}

    def page(self, draw: int, title: str, base: str | None, hrefs: list[str], wanted: int) -> bytes:
        """Return a page with these unescaped links in order, of `wanted` bytes or up to 1,500 more."""
        template = self._template(len(hrefs), draw % _VARIANTS)
        # Escaped at once: separate calls would cost more than the rest of the page.
        escaped = "\0".join(hrefs).replace("&", "&amp;").encode().split(b"\0") if hrefs else ()
        shown = title.encode()
        page: bytes = template % (_base_element(base).encode(), shown, shown, *escaped)
        return b"".join((page, self.filler(draw // _VARIANTS, wanted - len(page)), _PAGE_END))

    def frameset(self, draw: int, title: str, base: str | None, hrefs: list[str], wanted: int) -> bytes:
        frames = "".join(f'<frame src="{escape(href)}">\n' for href in hrefs)
        head = _HEAD % (_base_element(base), title) + f'<frameset cols="*,*">\n{frames}<noframes>\n'
        return head.encode() + self.filler(draw, wanted - len(head)) + b"</noframes></frameset></html>\n"

    def text(self, draw: int, wanted: int) -> bytes:
        return b'Notes. <a href="/phantom/notes.html">Not a link</a>\n' + self.filler(draw, wanted)

    def filler(self, draw: int, wanted: int) -> bytes:
        """Return whole paragraphs of `wanted` bytes, or up to a paragraph more."""
        if wanted <= 0:
            return b""
        start = self._starts[draw % _PARAGRAPHS]
        rounds, rest = divmod(start + wanted, len(self._text))
        end = self._starts[bisect_left(self._starts, rest)]
        if not rounds:
            return self._text[start:end]
        return self._text[start:] + self._text * (rounds - 1) + self._text[:end]

    def _template(self, links: int, variant: int) -> bytes:
        template = self._templates.get((links, variant))
        if template is None:
            rng = Random(f"{self._seed}/template/{links}/{variant}")
            template = self._templates[links, variant] = self._make_template(rng, links).encode()
        return template

    def _make_template(self, rng: Random, links: int) -> str:
        areas = 0
        parts = [_HEAD, "<body>\n<h1>%s</h1>\n"]
        for _ in range(links):
            drawn = rng.random()
            if drawn < 0.06:
                areas += 1
            elif drawn < 0.1:
                parts.append('<iframe src="%s" width="300" height="200"></iframe>\n')
            else:
                parts.append(rng.choice(_ANCHORS).format(" ".join(rng.choices(_WORDS, k=2))))
                parts.append("\n" if drawn < 0.6 else rng.choice(self.pool))
        parts += _misleading_texts(rng)
        parts.append('<img src="/assets/map.png" usemap="#plan" alt=""><map name="plan">\n')
        parts += ['<area shape="rect" coords="0,0,9,9" alt="" href="%s">\n'] * areas
        return "".join([*parts, "</map>\n"])


def render_notice(status: int, href: str | None = None) -> bytes:
    link = f'<p><a href="{escape(href)}">here</a></p>' if href else ""
    return f"<!DOCTYPE html>\n<html><head><title>{status}</title></head><body>{link}</body></html>\n".encode()


def in_own_words(page: bytes, draw: int) -> bytes:
    """Make a page's text unique by exchanging letters between tags. Cost: some 100 us."""
    letters = list(range(ord("a"), ord("z") + 1))
    Random(draw).shuffle(letters)
    table = bytes(letters[byte - ord("a")] if ord("a") <= byte <= ord("z") else byte for byte in range(256))
    return _texts.sub(lambda text: text[0].translate(table), page)


def with_changed_words(page: bytes, draw: int, words_max: int) -> bytes:
    rng = Random(draw)
    words = [match.span() for match in _words.finditer(page, page.rindex(b"<p>", 0, len(page) // 2) + 3)]
    for start, end in sorted(rng.sample(words, rng.randint(1, words_max)), reverse=True):
        page = b"".join((page[:start], b"%x" % rng.getrandbits(40), page[end:]))
    return page


_texts: Final = re.compile(rb"(?<=>)[^<>&]++(?=<)")
_words: Final = re.compile(rb"(?<=[ >])[a-z]{3,}(?=[ .])")
_PAGE_END: Final = b"</body></html>\n"
_HEAD: Final = (
    '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">\n%s'
    '<title>%s</title>\n<link rel="stylesheet" href="/assets/style-0.css">\n</head>\n'
)


def _base_element(base: str | None) -> str:
    return f'<base href="{escape(base)}">\n' if base else ""


def _misleading_texts(rng: Random) -> list[str]:
    """Return text that resembles links but contains none; their targets are phantoms."""
    number = rng.randrange(1000)
    return [
        f'<!-- <a href="/phantom/comment-{number}.html">withdrawn</a> -->\n',
        f"<script>var more = '<a href=\"/phantom/script-{number}.html\">more<\\/a>';</script>\n",
        f'<a href="{rng.choice(_DEAD_ENDS)}">contact</a> <a name="part-{number}">here</a>\n',
    ]
