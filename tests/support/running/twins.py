"""The two readers of links: lets tests run with each, and compares them over pages and references made by chance.

`python -m tests.support.running.twins SECONDS [SEED]` compares them for so long; `make sanitize` does it with checks of
memory, too.
"""

from __future__ import annotations

import random
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

from bigcrawl.scan import pure
from bigcrawl.scan.names import EMBEDDING, LINKING, RAW
from bigcrawl.scheduler.node.link_graph import RecentKeys
from bigcrawl.url.canonical import Joiner

try:
    from bigcrawl.scan import compiled
except ImportError:  # where there is no compiler
    compiled = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

TWINS: Final[dict[str, Any]] = {"pure": pure} | ({} if compiled is None else {"compiled": compiled})
"""Those that are here."""

# Where their functions are called.
_CALLED: Final = {
    "runs": ("bigcrawl.markup", "bigcrawl.links.tags"),
    "attributes": ("bigcrawl.markup",),
    "join_plain": ("bigcrawl.url.canonical",),
    "other_origins": ("bigcrawl.scheduler.node.link_graph",),
    "remember": ("bigcrawl.scheduler.node.link_graph",),
}

WIDE: Final = ("", "", "\u00e9", "\u4f8b", "\U0001f600", "\ud800")
PIECES: Final = (
    *(
        "<",
        "</",
        ">",
        "/>",
        "/",
        " ",
        "\n",
        "\t",
        "\f",
        "=",
        ' = "',
        '="',
        "='",
        '"',
        "'",
        "&",
        "&amp;",
        "\0",
        "-",
        "x",
    ),
    *("<!--", "-->", "--!>", "<!", "<?", "<![CDATA[", "]]>", "<a ", "<A\t", "<a>", "</a>", "<p>", "</p>", "<p x='"),
    *(
        "href",
        "HREF",
        ' href="',
        " href='y'",
        ' rel="',
        " REL",
        "nofollow",
        "NoF",
        "n",
        '<a class="b" href="/y" rel="t">',
    ),
    *('<a href="x">', "<a href=x>", "<svg>", "</svg>", "<math ", "</math>", "<title/>", "<script/>", "<plaintext>"),
    *(f"<{name}>" for name in RAW),
    *(f"</{name}>" for name in RAW),
    *(f"<{name} " for name in f"{LINKING}|{EMBEDDING}|plaintext".split("|")),
    *("<tEmPlate>", "</Template>", "<sCript src=x/>", "<lineargradientx>", "<k", "<\u212a", "\u0130=1", *WIDE),
)
REFERENCES: Final = (
    *("/", "//", "a", "Z9", ".", "..", "./", "../", "...", "?", "#", ":", "http:", "HTTPS://", "http", "site.example"),
    *("//site.example", "http://site.example", "h:80", "1.2.3.400", "%2e", "%", "'", "[", "|", "@", "=", "&", "_", "~"),
    *(" ", "\t", "\0", "\\", "^", "x" * 99, "x" * 200, "/d/e/", *WIDE),
)
BASES: Final = ("http://site.example/", "http://site.example/d/e?q", "https://h.example:8080/a//b/c/", "http://[::1]/x")


@contextmanager
def called(twin: str) -> Iterator[None]:
    """Have one of them called, whichever was chosen."""
    patches = [
        patch(f"{module}.{name}", getattr(TWINS[twin], name)) for name, modules in _CALLED.items() for module in modules
    ]
    for one in patches:
        one.start()
    try:
        yield
    finally:
        for one in patches:
            one.stop()


def assert_alike_on_page(text: str, looks: int = 40_000, more: Collection[str] = ()) -> None:
    """Both give the same runs of a text, and the same attributes of the text as if it were those of a tag."""
    found = [list(twin.runs(text, looks, more, True)) for twin in TWINS.values()]
    assert found[0] == found[-1], ascii(text[:2_000])
    without = [(hrefs, [], *rest) for hrefs, _, *rest in found[0]]
    assert [list(twin.runs(text, looks, more)) for twin in TWINS.values()] == [without] * len(TWINS)
    values = [list(twin.attributes(text).items()) for twin in TWINS.values()]
    assert values[0] == values[-1], ascii(text[:2_000])


def assert_alike_on_references(references: list[str], base: str, longest: int, most: int) -> None:
    """Both give the same URLs, and say rightly what these leave of the limits."""
    parts = Joiner(base).parts
    found = [twin.join_plain(references, parts, longest, most) for twin in TWINS.values()]
    assert found[0] == found[-1], (references, base)
    urls, left, all_fit = found[0]
    assert left == most - sum(len(url or "") for url in urls)
    assert all_fit == (len(urls) == len(references) and all(url and len(url) <= longest for url in urls))


def assert_alike_on_urls(urls: list[str], origin: str) -> None:
    """Both find the origins that Python's own methods find."""
    others = {url[: url.find("/", 8) + 1] for url in urls if not url.startswith(origin)}
    assert [twin.other_origins(urls, origin) for twin in TWINS.values()] == [others] * len(TWINS), (urls, origin)


def assert_alike_on_keys(batches: list[list[int]], places: int) -> None:
    """Both keep in a table, and call new, what it does and tells key by key."""
    one_by_one = RecentKeys(places)
    tables = [one_by_one._keys.copy() for _ in TWINS]
    for keys in batches:
        new = [at for at, key in enumerate(keys) if one_by_one.remember(key % (1 << 64))]
        for twin, table in zip(TWINS.values(), tables, strict=True):
            assert twin.remember(table.data, places // 2 - 1, keys) == new, (batches, places)
            assert table.tobytes() == one_by_one._keys.tobytes(), (batches, places)


def main(seconds: float, seed: int) -> None:
    dice, ends, count = random.Random(seed), time.monotonic() + seconds, 0
    while time.monotonic() < ends:
        text = "".join(dice.choices(PIECES, k=dice.randrange(1, 60)))
        more = dice.choice(((), (), ("img",), ("title", "script"), frozenset({"textarea", "a"})))
        assert_alike_on_page(text, dice.choice((0, 1, 2, 5, 100)), more)
        references = ["".join(dice.choices(REFERENCES, k=dice.randrange(1, 7))) for _ in range(dice.randrange(8))]
        assert_alike_on_references(
            references, dice.choice(BASES), dice.choice((20, 150, 8_192)), dice.choice((-1, 90, 1 << 62))
        )
        assert_alike_on_urls(references, dice.choice(("", "http://site.example/", dice.choice(REFERENCES))))
        bits = dice.choice((4, 6, 66))
        keys = [[dice.randrange(-1 << bits, 1 << bits) for _ in range(dice.randrange(20))] for _ in range(3)]
        assert_alike_on_keys(keys, dice.choice((4, 16, 1 << 10)))
        count += 1
    sys.stdout.write(f"{count} pages alike, seed {seed}\n")


if __name__ == "__main__":
    assert compiled is not None, "there is only one"
    main(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 32))
