"""Detects from a page's bytes whether its text or links come from scripts, without a browser.

    redirect    little text, and a script that leads elsewhere
    shell       the element that an application fills is empty, or says that it loads
    noscript    little text, and a `noscript` that asks for JavaScript
    templates   the markup of a framework that fills it in the browser
    routes      links such as `#/about`, or a script that sets the address
    written     a script writes links or text with `document.write`
    list        a list that a script fills, a list that goes on when it is scrolled, or a button for more
    shadow      links in a shadow tree, or elements that a script defines

A page without scripts needs none of these, and neither does one that has its text and links already.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from bigcrawl_rendering.scanning import CHARS_MAX, scan

if TYPE_CHECKING:
    from bigcrawl_rendering.scanning import Scan

LITTLE_TEXT: Final = 200
"""Characters; a page of an application has that in its frame, and a page of text has more."""
FEW_LINKS: Final = 3

_MOUNTS: Final = frozenset(
    [
        "root",
        "app",
        "__next",
        "__nuxt",
        "___gatsby",
        "main-app",
        "q-app",
        "react-root",
        "svelte",
        "application",
        "app-root",
        "my-app",
        "ion-app",
        "app-shell",
        "app-container",
        "react-app",
        "vue-app",
        "spa",
        "mount",
        "elm",
        "wrapper-app",
        "ember-app",
        "__sapper__",
        "__layout",
        "outlet",
    ]
)
_LOADS: Final = re.compile(
    r"\bloading\b|please wait|\bchargement\b|wird geladen|\bcargando\b|\bcaricamento\b|\bcarregando\b|"
    r"загрузка|読み込み|加载中",
    re.IGNORECASE,
)
_MORE: Final = re.compile(
    r"\W*(?:(?:load|show|view|see|read) (?:\d+ )?more(?: \w+)?|more (?:results|posts|items|articles|stories)|"
    r"mehr (?:laden|anzeigen)|weitere (?:laden|anzeigen)|(?:voir|afficher) plus|(?:ver|cargar|mostrar) más|"
    r"mostra altri|ещё|もっと見る|加载更多)\W*",
    re.IGNORECASE,
)
_ASKS_FOR_SCRIPTS: Final = re.compile(r"java\s?script", re.IGNORECASE)
_FILLED: Final = re.compile(
    r"(?:ng-(?:app|view|repeat|controller)|ui-view|v-for|x-for|data-ng-(?:app|repeat|view)|aurelia-app)"
    r"(?:=|$)|data-bind=.*foreach",
    re.IGNORECASE,
)
_GOES_ON: Final = re.compile(
    r"infinite[-_]?(?:scroll|list|load)|load[-_]?more|lazy[-_]?list|endless[-_]?scroll|data-next-(?:page|url)=|"
    r"hx-trigger=.*(?:revealed|intersect|load)",
    re.IGNORECASE,
)
_LEADS_AWAY: Final = re.compile(
    r"\blocation(?:\.href)?\s*=(?!=)\s*\S|\blocation\.(?:replace|assign)\s*\(|\bwindow\.open\s*\(", re.IGNORECASE
)
_WRITES: Final = re.compile(r"document\.write(?:ln)?\s*\(", re.IGNORECASE)
_MARKUP_IN_SCRIPT: Final = re.compile(r"<(?:a|li|ul|p|h[1-6]|div|table|tr|article)[\s>\\]", re.IGNORECASE)
_ASKS: Final = re.compile(
    r"\bfetch\s*\(|XMLHttpRequest|\$\.(?:get|ajax|getJSON)\s*\(|\baxios\b|EventSource", re.IGNORECASE
)
_BUILDS: Final = re.compile(
    r"\.innerHTML\b|appendChild\s*\(|insertAdjacentHTML|\.append\s*\(|\.html\s*\(|replaceChildren|\.textContent\s*=|"
    r"createElement\s*\(",
    re.IGNORECASE,
)
_LISTENS_TO_SCROLL: Final = re.compile(r"IntersectionObserver|addEventListener\s*\(\s*['\"]scroll|\bonscroll\b")
_SETS_ADDRESS: Final = re.compile(r"history\s*\.\s*(?:push|replace)State\s*\(|\bonhashchange\b|['\"]hashchange['\"]")
_SHADOWS: Final = re.compile(r"attachShadow\s*\(|customElements\s*\.\s*define\s*\(")
_COUNTS_VISITORS: Final = re.compile(
    r"googletagmanager|google-analytics|/gtag/|/analytics|matomo|piwik|plausible|hotjar|facebook|doubleclick|adsbygoogle|"
    r"googlesyndication|cookie|consent|segment\.|newrelic|nr-data|sentry|clarity\.ms|cloudflareinsights|recaptcha|"
    r"email-decode|polyfill|modernizr|html5shiv|respond\.|jquery|bootstrap|fontawesome|/share|addthis|disqus|stripe|turnstile",
    re.IGNORECASE,
)


class Verdict(NamedTuple):
    """Why a page needs a browser: `reason` is one of those above; empty if it needs none."""

    reason: str = ""

    def __bool__(self) -> bool:
        return bool(self.reason)


ENOUGH: Final = Verdict()


def judge_page(page: str) -> Verdict:
    """Return why a page should be rendered. Only its first `CHARS_MAX` characters are read."""
    if "<script" not in page[:CHARS_MAX].lower() and "shadowrootmode" not in page[:CHARS_MAX]:
        return ENOUGH
    found = scan(page)
    return next((Verdict(reason) for reason, test in _TESTS if test(found)), ENOUGH)


def _has_little(found: Scan) -> bool:
    return found.text_chars < LITTLE_TEXT and found.links <= FEW_LINKS


def _has_own_scripts(found: Scan) -> bool:
    return found.modules > 0 or any(not _COUNTS_VISITORS.search(source) for source in found.sources)


def _redirects(found: Scan) -> bool:
    return _has_little(found) and not found.sources and bool(_LEADS_AWAY.search(found.inline))


def _is_shell(found: Scan) -> bool:
    """Whether the element that an application fills is empty: by its name, or because the page has no other."""
    runs = _has_own_scripts(found) or bool(_BUILDS.search(found.inline))
    if not runs:
        return False
    for name, chars, links in found.mounts:
        is_named = name.lower() in _MOUNTS or name.lower().endswith(("-root", "-app"))
        rest, rest_links = found.text_chars - chars, found.links - links
        if is_named and not rest_links and rest < LITTLE_TEXT // 2 and (rest < 40 or _LOADS.search(found.text)):
            return True
    is_bare = _has_little(found) and (bool(found.empty) or found.text_chars < 20 or _LOADS.search(found.text))
    return bool(is_bare) and _has_own_scripts(found)


def _asks_for_scripts(found: Scan) -> bool:
    asks = _ASKS_FOR_SCRIPTS.search(found.noscript)
    return bool(asks) and found.text_chars < 2 * LITTLE_TEXT and found.links <= FEW_LINKS


def _is_template(found: Scan) -> bool:
    has_holes = found.text.count("{{") >= 2
    return has_holes or any(map(_FILLED.match, found.attributes))


def _has_routes(found: Scan) -> bool:
    sets_address = _SETS_ADDRESS.search(found.inline) and _BUILDS.search(found.inline)
    return found.hash_links >= 2 or bool(sets_address and found.links <= FEW_LINKS)


def _is_written(found: Scan) -> bool:
    for call in _WRITES.finditer(found.inline):
        argument = found.inline[call.end() : call.end() + 300]
        if _MARKUP_IN_SCRIPT.search(argument):
            return True
    return _has_little(found) and bool(_WRITES.search(found.inline)) and "script" not in found.inline.lower()


def _has_list(found: Scan) -> bool:
    asks, builds = _ASKS.search(found.inline), _BUILDS.search(found.inline)
    if asks and builds and found.empty:
        return True
    if builds and (found.empty or _LISTENS_TO_SCROLL.search(found.inline)) and _has_little(found):
        return True
    if asks and _LISTENS_TO_SCROLL.search(found.inline):
        return True
    runs = found.sources or found.inline.strip()
    return bool(runs) and (any(map(_GOES_ON.search, found.attributes)) or any(map(_MORE.fullmatch, found.labels)))


def _has_shadows(found: Scan) -> bool:
    return found.shadow_links or (_has_little(found) and bool(_SHADOWS.search(found.inline)))


_TESTS: Final = (
    ("redirect", _redirects),
    ("shell", _is_shell),
    ("noscript", _asks_for_scripts),
    ("templates", _is_template),
    ("routes", _has_routes),
    ("written", _is_written),
    ("list", _has_list),
    ("shadow", _has_shadows),
)
