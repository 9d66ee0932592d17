"""A web of topics, for focused crawls: a twentieth of its pages belongs to each topic, and pages link to similar ones.

The first page of a host is a portal without a topic. Of the others, every second one is about the host's main topic,
and the rest about all topics in turn. A page has 20 links: two to its children in a tree of its host; of the others, 35
% to a page of the same topic on any host, 25 % to a page of the host, 20 % anywhere, and 20 % to portals. So pages link
to their own topic some twenty times as often as other pages do.

Sources: Davison, "Topical locality in the web" (SIGIR 2000); Menczer, "Lexical and semantic clustering by web links"
(JASIST 2004). The shares are ours.
"""

from __future__ import annotations

import re
from random import Random
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from bigcrawl.exceptions import ConfigError
from bigcrawl_simweb.basics.addresses import HOSTS_MAX, address_of, index_of, origin_of
from bigcrawl_simweb.basics.answer import Answer
from bigcrawl_simweb.basics.markup import paragraph_pool, render_notice
from bigcrawl_simweb.basics.power_law import mix_bits

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

TOPICS: Final[tuple[tuple[str, ...], ...]] = (
    ("bees", "honey", "beehive", "beekeeper", "pollen", "swarm", "nectar", "honeycomb"),
    ("sailing", "yacht", "regatta", "mast", "keel", "spinnaker", "jib", "rudder"),
    ("chess", "gambit", "checkmate", "rook", "bishop", "castling", "endgame", "pawn"),
    ("opera", "soprano", "aria", "libretto", "tenor", "overture", "baritone", "maestro"),
    ("volcano", "lava", "magma", "eruption", "crater", "caldera", "basalt", "tephra"),
    ("bakery", "sourdough", "yeast", "flour", "baguette", "dough", "croissant", "rye"),
    ("astronomy", "telescope", "nebula", "comet", "galaxy", "asteroid", "eclipse", "pulsar"),
    ("cycling", "bicycle", "peloton", "derailleur", "velodrome", "pedal", "saddle", "criterium"),
    ("railway", "locomotive", "tramway", "signalman", "sleeper", "shunting", "viaduct", "turntable"),
    ("pottery", "kiln", "glaze", "porcelain", "stoneware", "earthenware", "ceramic", "clay"),
    ("falconry", "falcon", "hawk", "kestrel", "talon", "jesses", "goshawk", "peregrine"),
    ("vineyard", "wine", "grape", "cellar", "riesling", "vintner", "cork", "tannin"),
    ("cryptography", "cipher", "plaintext", "decryption", "keystream", "nonce", "hash", "signature"),
    ("knitting", "wool", "needle", "crochet", "stitch", "yarn", "purl", "sweater"),
    ("glacier", "moraine", "iceberg", "crevasse", "fjord", "icefall", "serac", "permafrost"),
    ("typography", "serif", "kerning", "ligature", "typeface", "italic", "leading", "punchcutter"),
    ("fencing", "epee", "sabre", "foil", "riposte", "parry", "lunge", "piste"),
    ("mushroom", "chanterelle", "mycelium", "spore", "truffle", "fungus", "bolete", "morel"),
    ("beetle", "ladybird", "weevil", "elytra", "larva", "scarab", "entomology", "mandible"),
    ("lighthouse", "foghorn", "lightkeeper", "fresnel", "seamark", "beacon", "daymark", "lightship"),
)
"""A twentieth of a topical web's pages belongs to each."""


LINKS: Final = 20
PAGES_MAX: Final = 10**9
_CHILDREN: Final = 2
_ALIKE, _NEAR, _ANYWHERE = 0.35, 0.6, 0.8  # cumulative shares of the kinds of links
_ANCHOR_SHARE, _MENTION_SHARE, _URL_PERCENT = 0.6, 0.2, 30
_TOPIC_SENTENCES: Final = 5
_TEXTS: Final = 8  # paragraphs of a page without a topic
_COUNT: Final = len(TOPICS)
_TARGET: Final = re.compile(r"/(?:[a-z-]+/)?item-(0|[1-9][0-9]{0,9})\.html\Z")
_HTML: Final = (("Content-Type", "text/html; charset=utf-8"),)
_NO_CONDITIONS: Final[Mapping[str, str]] = MappingProxyType({})
_PAGE: Final = (
    '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title></head>\n'
    "<body><h1>{title}</h1>\n{text}<ul>\n{links}</ul>\n</body></html>\n"
)
_GENERIC: Final = ("more", "here", "next", "read on", "details", "overview")


class TopicalWeb:
    """A web of topics, with the part of `Web`'s interface that serving needs.

    Args:
        seed: any int; another seed gives other links and texts.
        hosts: `len(TOPICS)` to `HOSTS_MAX`; host i has the address `address_of(i)` and the main topic i mod 20.
        pages_per_host: at least twice the number of topics.

    Cost: stores nothing; a page takes some 0.3 ms.
    """

    def __init__(self, seed: int, hosts: int, pages_per_host: int) -> None:
        least = 2 * _COUNT
        if not _COUNT <= hosts <= HOSTS_MAX:
            raise ConfigError(f"hosts is {hosts}; must be between {_COUNT}, one for each topic, and {HOSTS_MAX}")
        if not least <= pages_per_host <= PAGES_MAX // hosts:
            raise ConfigError(f"pages per host is {pages_per_host}; must be between {least} and {PAGES_MAX // hosts}")
        self.seed = seed
        self.hosts = hosts
        self.pages_per_host = pages_per_host
        self._paragraphs = paragraph_pool(seed)

    def __repr__(self) -> str:
        return f"TopicalWeb(seed={self.seed}, hosts={self.hosts}, pages_per_host={self.pages_per_host})"

    def addresses(self) -> Iterator[str]:
        return map(address_of, range(self.hosts))

    def address_of(self, name: str) -> None:
        """Return None; hosts have addresses but no names."""

    def seeds(self, port: int) -> list[str]:
        return [self.url(host, 0, port) for host in range(self.hosts)]

    def topic_of(self, host: int, number: int) -> int | None:
        """Return the index in `TOPICS` of a page's topic; None for a portal."""
        if not number:
            return None
        return host % _COUNT if number % 2 else (mix_bits(self.seed ^ mix_bits(host)) + number // 2) % _COUNT

    def topic_at(self, url: str) -> int | None:
        """Return the index in `TOPICS` of the topic at a URL; None for a portal, or outside of this web."""
        authority, _, path = url.partition("://")[2].partition("/")
        found = self._parse_target(authority.partition(":")[0], f"/{path}")
        return None if found is None else self.topic_of(*found)

    def count(self, topic: int) -> int:
        """Return the number of a topic's pages, at 0.5 us for every page of the web."""
        pages = range(1, self.pages_per_host)
        return sum(self.topic_of(host, number) == topic for host in range(self.hosts) for number in pages)

    def url(self, host: int, number: int, port: int) -> str:
        topic, draw = self.topic_of(host, number), mix_bits(self.seed ^ mix_bits(host << 32 | number))
        speaks = topic is not None and draw % 100 < _URL_PERCENT
        words = TOPICS[topic or 0]
        directory = f"{words[draw // 100 % len(words)]}/" if speaks else ""
        return f"{origin_of(address_of(host), port)}/{directory}item-{number}.html"

    def links(self, host: int, number: int) -> list[tuple[int, int]]:
        draw = Random(f"{self.seed}/{host}/{number}/links")
        first = _CHILDREN * number + 1
        targets = [(host, child) for child in range(first, first + _CHILDREN) if child < self.pages_per_host]
        while len(targets) < LINKS:
            targets.append(self._draw_target(draw, host, self.topic_of(host, number)))
        draw.shuffle(targets)
        return targets

    def answer(
        self, host: str, target: str, port: int, *, at_ms: int = 0, conditions: Mapping[str, str] = _NO_CONDITIONS
    ) -> Answer:
        index = index_of(host)
        if index is None or index >= self.hosts:
            return Answer(421, _HTML, render_notice(421))
        page = self._parse_target(host, target)
        if page is None or self.url(*page, port).partition("://")[2].partition("/")[2] != target[1:]:
            return Answer(404, _HTML, render_notice(404))
        return Answer(200, _HTML, self._page_body(*page, port))

    def _parse_target(self, address: str, target: str) -> tuple[int, int] | None:
        index, match = index_of(address), _TARGET.match(target)
        if index is None or index >= self.hosts or match is None:
            return None
        number = int(match[1])
        return (index, number) if number < self.pages_per_host else None

    def _draw_target(self, draw: Random, host: int, topic: int | None) -> tuple[int, int]:
        kind = draw.random()
        if kind < _ALIKE and topic is not None:
            return self._draw_same_topic(draw, topic)
        if kind < _NEAR:
            return host, draw.randrange(self.pages_per_host)
        other = draw.randrange(self.hosts)
        return other, draw.randrange(self.pages_per_host) if kind < _ANYWHERE else 0

    def _draw_same_topic(self, draw: Random, topic: int) -> tuple[int, int]:
        """Return a page of a topic: half on hosts with this main topic, half on any host."""
        if draw.random() < 0.5:
            host = topic + _COUNT * draw.randrange((self.hosts - topic + _COUNT - 1) // _COUNT)
            return host, 2 * draw.randrange(self.pages_per_host // 2) + 1
        host = draw.randrange(self.hosts)
        first = (topic - mix_bits(self.seed ^ mix_bits(host))) % _COUNT or _COUNT
        rounds = (self.pages_per_host - 1 - 2 * first) // (2 * _COUNT) + 1
        return host, 2 * (first + _COUNT * draw.randrange(max(1, rounds)))

    def _page_body(self, host: int, number: int, port: int) -> bytes:
        topic, draw = self.topic_of(host, number), Random(f"{self.seed}/{host}/{number}/text")
        text = draw.choices(self._paragraphs, k=_TEXTS)
        if topic is not None:
            words = [word.capitalize() for word in draw.choices(TOPICS[topic], k=_TOPIC_SENTENCES)]
            text += [f"<p>{word} and {draw.choice(TOPICS[topic])}.</p>\n" for word in words]
        if draw.random() < _MENTION_SHARE:
            text.append(f"<p>Nobody asked for {draw.choice(draw.choice(TOPICS))}.</p>\n")
        draw.shuffle(text)
        rows = [
            f'<li><a href="{self.url(*target, port)}">{self._anchor_text(draw, target)}</a>\n'
            for target in self.links(host, number)
        ]
        title = f"Page {number}" if topic is None else f"Page {number}: {draw.choice(TOPICS[topic])}"
        return _PAGE.format(title=title, text="".join(text), links="".join(rows)).encode()

    def _anchor_text(self, draw: Random, target: tuple[int, int]) -> str:
        topic = self.topic_of(*target)
        speaks = topic is not None and draw.random() < _ANCHOR_SHARE
        return f"about {draw.choice(TOPICS[topic or 0])}" if speaks else draw.choice(_GENERIC)
