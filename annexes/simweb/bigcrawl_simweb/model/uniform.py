"""A web for benchmarks in which every page costs the same: 21,000 bytes of HTML, 60 links, HTTP 200.

Six links of a page are new: its children in a tree, to which no other page links. The other 54 lead to pages that are
known in any crawl order: the host's menu, ancestors and their other children on the host, and first pages of other
hosts. So 10 % of the links are new, except for a host's menu; `menus` lists all menus, to be used as seeds.

With H hosts and a menu of M pages, the pages below ROOTS = H * M are roots, page n on host n mod H. Page n has the
children ROOTS + 6 n + 0 ... 5; the last of them is on a host drawn from n, the others on the host of n. Numbers above
`_TREE_END`, which a depth-first crawl would soon reach, are drawn from n instead, from a range too large for
collisions, and the host is the number mod H.
"""

from __future__ import annotations

import re
import struct
from operator import itemgetter
from random import Random
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from bigcrawl.exceptions import ConfigError
from bigcrawl_simweb.basics.addresses import HOSTS_MAX, address_of, index_of, origin_of
from bigcrawl_simweb.basics.answer import Answer
from bigcrawl_simweb.basics.markup import paragraph_pool, render_notice
from bigcrawl_simweb.basics.power_law import mix_bits, random_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PAGE_BYTES: Final = 21_000
LINKS: Final = 60
NEW_LINKS: Final = 6
LOCAL_LINKS: Final = 48

_MENU: Final = 44
_NEAR_CHILDREN: Final = 5
_FAR_OLD: Final = LINKS - LOCAL_LINKS - 1
_NEAR_OLD: Final = LOCAL_LINKS - _NEAR_CHILDREN
# Links lead to this many generations of ancestors and to their other children.
_GENERATIONS_MAX: Final = 3
_TREE_END: Final = 10**18

_ROBOTS_TARGET: Final = "/robots.txt"
_ROBOTS: Final = (
    b"User-agent: *\nDisallow: /private/\nDisallow: /cgi-bin/\nDisallow: /*?session=\nDisallow: /*.pdf$\nAllow: /\n"
)
_TARGET: Final = re.compile(r"/page/(0|[1-9][0-9]{0,18})\.html\Z")
_FORBIDDEN: Final = re.compile(r"/private/|/cgi-bin/|/.*\?session=|/.*\.pdf\Z")
_HTML: Final = (("Content-Type", "text/html; charset=utf-8"),)
_PLAIN: Final = (("Content-Type", "text/plain; charset=utf-8"),)

_NO_CONDITIONS: Final[Mapping[str, str]] = MappingProxyType({})
_TEMPLATES: Final = 16
_TEXT: Final = b"<p>"
_TAIL: Final = b"</p>\n</body></html>\n"
_DRAWS: Final = struct.Struct("<16I")
_LINK_PURPOSE, _HOST_PURPOSE, _CHILD_PURPOSE = 1, 2, 3


class UniformWeb:
    """An endless web with the interface of `Web`, but without `reachable`.

    Args:
        seed: any int; another seed gives other links and texts.
        hosts: 1 to `HOSTS_MAX`; host i has the address `address_of(i)`.
    """

    def __init__(self, seed: int, hosts: int) -> None:
        if not 1 <= hosts <= HOSTS_MAX:
            raise ConfigError(f"hosts is {hosts}; must be between 1 and {HOSTS_MAX}")
        self.seed = seed
        self.hosts = hosts
        self._roots = hosts * _MENU
        paragraphs = paragraph_pool(seed)
        # Twice, so that a page's filler can start anywhere in the first.
        self._filler = "".join(text[3:-5] for text in paragraphs).encode("ascii", "ignore") * 2
        self._templates = [_PageTemplate(Random(f"{seed}/uniform/{n}"), paragraphs) for n in range(_TEMPLATES)]

    def __repr__(self) -> str:
        return f"UniformWeb(seed={self.seed}, hosts={self.hosts})"

    def addresses(self) -> Iterator[str]:
        return map(address_of, range(self.hosts))

    def seeds(self, port: int) -> list[str]:
        return [self._url_of_page(number, port) for number in range(self.hosts)]

    def menus(self, port: int) -> Iterator[str]:
        return (self._url_of_page(number, port) for number in range(self._roots))

    def answer(
        self, host: str, target: str, port: int, *, at_ms: int = 0, conditions: Mapping[str, str] = _NO_CONDITIONS
    ) -> Answer:
        index = index_of(host)
        if index is None or index >= self.hosts:
            return Answer(421, _HTML, render_notice(421))
        match = _TARGET.match(target)
        if match is not None:
            number = int(match[1])
            if self.host_of(number) == index:
                return Answer(200, _HTML, self._page_body(number, index, port))
        if target == _ROBOTS_TARGET:
            return Answer(200, _PLAIN, _ROBOTS)
        return Answer(404, _HTML, render_notice(404))

    def allows(self, host: str, target: str) -> bool:
        return _FORBIDDEN.match(target) is None

    def address_of(self, name: str) -> None:
        """Return None; hosts have addresses but no names."""

    def crawl_delays_ms(self) -> dict[str, int]:
        return {}

    def is_endless(self, host: str, target: str) -> bool:
        return _TARGET.match(target) is not None

    def host_of(self, number: int) -> int:
        """Return the host of page `number`. Cost: proportional to its ancestors on that host."""
        while self._roots <= number < _TREE_END:
            parent, child = divmod(number - self._roots, NEW_LINKS)
            if child == _NEAR_CHILDREN:
                return mix_bits(self.seed ^ mix_bits(parent + _HOST_PURPOSE)) % self.hosts
            number = parent
        return number % self.hosts

    def children(self, number: int) -> list[int]:
        """Return the six pages linked only from page `number`; the first five are on its host."""
        first = self._roots + NEW_LINKS * number
        if first + _NEAR_CHILDREN < _TREE_END:
            return list(range(first, first + NEW_LINKS))
        drawn = [mix_bits(self.seed ^ mix_bits(first + child + _CHILD_PURPOSE)) for child in range(NEW_LINKS)]
        # A multiple of the number of hosts, so that the remainder can be the host.
        base, near = _TREE_END - _TREE_END % self.hosts + self.hosts, self.host_of(number)
        room = (10**19 - base) // self.hosts - 1
        hosts = [near] * _NEAR_CHILDREN + [drawn[-1] % self.hosts]
        return [base + draw % room * self.hosts + host for draw, host in zip(drawn, hosts, strict=True)]

    def _page_body(self, number: int, host: int, port: int) -> bytes:
        draws = random_words(_DRAWS, self.seed, _LINK_PURPOSE, host, number)
        *near, far = self.children(number)
        near += self._known_relatives(number, host, draws[0])
        remote: list[bytes | int] = []
        for place, other in [(self.host_of(far), far), *self._known_distant_pages(host, draws)]:
            remote += (origin_of(address_of(place), port).encode(), other)
        return self._templates[draws[1] % _TEMPLATES].fill(number, near, remote, self._filler, draws[2])

    def _known_relatives(self, number: int, host: int, draw: int) -> list[int]:
        """Return 43 distinct known pages of the host: first relatives in the tree, then the menu."""
        family: list[int] = []
        page = number
        for _ in range(_GENERATIONS_MAX):
            if not self._roots <= page < _TREE_END:
                break
            parent, child = divmod(page - self._roots, NEW_LINKS)
            if child == _NEAR_CHILDREN:
                break
            first = page - child
            family += [sibling for sibling in range(first, first + _NEAR_CHILDREN) if sibling != page]
            page = parent
            if page >= self._roots:
                family.append(page)
        menu = [host + self.hosts * ((draw + place) % _MENU) for place in range(_MENU)]
        if number in menu:
            menu.remove(number)
        return (family + menu)[:_NEAR_OLD]

    def _known_distant_pages(self, host: int, draws: tuple[int, ...]) -> Iterator[tuple[int, int]]:
        start, step = draws[3], 1 + draws[4] % max(1, (self.hosts - 1) // (_FAR_OLD + 1))
        for place in range(1, _FAR_OLD + 1):
            other = (host + 1 + (start + place * step) % max(1, self.hosts - 1)) % self.hosts
            yield other, other

    def _url_of_page(self, number: int, port: int) -> str:
        return f"{origin_of(address_of(self.host_of(number)), port)}/page/{number}.html"


class _PageTemplate:
    def __init__(self, rng: Random, paragraphs: tuple[str, ...]) -> None:
        slots = list(range(LINKS))
        rng.shuffle(slots)
        # Values are 48 local numbers, then origin and number of 12 remote pages; `_pick` puts them in page order.
        order: list[int] = []
        parts = [
            '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">\n<title>Page %d</title>\n</head>\n<body>\n'
        ]
        for slot in slots:
            text = " ".join(rng.choice(paragraphs)[3:-5].split()[:3])
            if slot < LOCAL_LINKS:
                order.append(slot)
                parts.append(f'<li class="item"><a href="/page/%d.html">{text}</a>\n')
            else:
                place = LOCAL_LINKS + 2 * (slot - LOCAL_LINKS)
                order += (place, place + 1)
                parts.append(f'<li class="item out"><a rel="bookmark" href="%b/page/%d.html">{text}</a>\n')
            if rng.random() < 0.4:
                parts.append(rng.choice(paragraphs))
        self._format = "".join(parts).encode()
        self._pick = itemgetter(*order)

    def fill(self, number: int, near: list[int], remote: list[bytes | int], filler: bytes, draw: int) -> bytes:
        page: bytes = self._format % (number, *self._pick([*near, *remote]))
        missing = PAGE_BYTES - len(page) - len(_TAIL) - len(_TEXT)
        start = draw % (len(filler) // 2)
        return b"".join((page, _TEXT, filler[start : start + missing], _TAIL))
