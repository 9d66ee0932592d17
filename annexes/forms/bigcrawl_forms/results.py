"""The records of an answer, and its next page."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, urlsplit

from bigcrawl.url.canonical import host_of
from bigcrawl_forms.classifying import split_words, words_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

RECORDS_OF_PAGE_MAX: Final = 1_000
_NEXT: Final = split_words(
    "next older more weiter nächste suivant suivante siguiente próxima successiva volgende dalej далее 次へ 下一页"
)
"""First words of the links to a next page."""
_ARROWS: Final = frozenset(("»", "\N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK}", ">", "→", ">>"))
_PAGE_NAMES: Final = split_words(
    "page p pg pn pagenum pageno pagenumber paged start startindex startrow offset from skip first firstresult begin "
    "seite pagina página strona strana sida"
)
_DIGITS_MAX: Final = 9
_ASSETS: Final = (".css", ".js", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".ico", ".webp")


def records_of(
    urls: Sequence[str], anchors: Sequence[str], action: str, matches: Callable[[str], object] | None
) -> list[str]:
    """Return the URLs of records: those that a rule matches, or those on the form's host that are not searches.

    Without a rule, the caller removes links that are not results. `anchors` are the texts of the links.
    """
    if matches is not None:
        return [url for url in urls if matches(url)][:RECORDS_OF_PAGE_MAX]
    host, path = host_of(action), urlsplit(action).path
    found = []
    for url, anchor in zip(urls, anchors, strict=True):
        its_path = urlsplit(url).path
        is_page = _is_below(its_path, path) and (anchor.strip().isdecimal() or _says_next(anchor))
        if host_of(url) == host and its_path != path and not is_page and not its_path.lower().endswith(_ASSETS):
            found.append(url)
    return found[:RECORDS_OF_PAGE_MAX]


def next_page_of(here: str, urls: Sequence[str], anchors: Sequence[str], asked: Collection[str] = ()) -> str | None:
    """Return the URL of the next page of results; None if there is none.

    It has the path of this page and its query, but for one number that is higher, or added; or it is below the path of
    this page, and the text of its link says so.

    Args:
        here: the URL of this page, or for a form sent by POST that of the form.
        urls: canonical URLs of the page's links.
        anchors: the texts of the links to them.
        asked: the URLs of this query's pages so far.
    """
    said = [
        url
        for url, anchor in zip(urls, anchors, strict=False)
        if _says_next(anchor) and url not in asked and url != here and _shares_path(here, url)
    ]
    if said:
        return said[0]
    higher = [(number, url) for url in urls if (number := _number_of_page(here, url)) and url not in asked]
    return min(higher)[1] if higher else None


def _says_next(anchor: str) -> bool:
    words = anchor.split()
    return 0 < len(words) <= 3 and (words[0].casefold() in _NEXT or words[0] in _ARROWS)


def _number_of_page(here: str, url: str) -> int:
    """Return the page number in a URL that is a later page of the same query; otherwise 0."""
    one, two = urlsplit(here), urlsplit(url)
    if (one.netloc, one.path) != (two.netloc, two.path):
        return 0
    ours, theirs = (dict(parse_qsl(parts.query, keep_blank_values=True)) for parts in (one, two))
    changed = [name for name in theirs if theirs[name] != ours.get(name, None if theirs[name] else "")]
    lost = [name for name in ours if ours[name] and name not in theirs]
    if len(changed) != 1 or lost or _PAGE_NAMES.isdisjoint([*words_of(changed[0]), "".join(words_of(changed[0]))]):
        return 0
    if not theirs[changed[0]].isdecimal() or len(theirs[changed[0]]) > _DIGITS_MAX:
        return 0
    number, now = int(theirs[changed[0]]), ours.get(changed[0], "1")
    return number if now.isdecimal() and number > int(now) else 0


def _shares_path(here: str, url: str) -> bool:
    one, two = urlsplit(here), urlsplit(url)
    return one.netloc == two.netloc and (_is_below(two.path, one.path) or _without_numbers(one.path, two.path))


def _without_numbers(one: str, two: str) -> bool:
    """Return whether two paths differ only in numbers."""
    return re.sub(r"\d+", "0", one) == re.sub(r"\d+", "0", two)


def _is_below(path: str, top: str) -> bool:
    return path == top or (len(top) > 1 and path.startswith(top.rstrip("/") + "/"))
