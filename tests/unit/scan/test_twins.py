"""The reader in C gives what the reader in Python gives, as cheaply for any page, and forgets nothing it allocated.

What both must give is asked by the tests that use the fixture `twin`.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bigcrawl import markup
from bigcrawl.links import tags
from bigcrawl.scheduler.node import link_graph
from bigcrawl.url import canonical
from bigcrawl.url.canonical import Joiner
from tests.support.costs.corpus import USUAL, bombs_of
from tests.support.costs.genomes import grown
from tests.support.costs.proportion import assert_costs
from tests.support.imports import PROJECT
from tests.support.running.twins import (
    BASES,
    PIECES,
    REFERENCES,
    TWINS,
    WIDE,
    assert_alike_on_keys,
    assert_alike_on_page,
    assert_alike_on_references,
    assert_alike_on_urls,
    called,
)
from tests.support.sizes import examples

if TYPE_CHECKING:
    from collections.abc import Collection

BOMB_BYTES = 1 << 17
TIMES = 40  # what the dearest bomb may cost of a usual page in one reader; a square would be thousands

in_both = pytest.mark.skipif(len(TWINS) == 1, reason="there is no compiler, so the reader in C was not built")
each_twin = pytest.mark.parametrize("twin", TWINS.values(), ids=TWINS)
texts = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=3)), max_size=60).map("".join)
urls = st.lists(st.sampled_from(("http://", "a.example", "b", "/", ":80", *WIDE)), max_size=6).map("".join)
keys = st.lists(st.lists(st.one_of(st.integers(0, 40), st.integers(-1 << 70, 1 << 70)), max_size=30), max_size=5)
references = st.lists(st.lists(st.sampled_from(REFERENCES), min_size=1, max_size=6).map("".join), max_size=8)


@in_both
@settings(max_examples=examples(2_000))
@given(
    texts, st.sampled_from([0, 1, 2, 5, 100]), st.sampled_from([(), ("img",), ("title", "script"), {"textarea", "a"}])
)
@example("<a href='x' <a href=\"y\"", 100, ())
@example("<svg><title/><a href='\u4f8b'></svg><script/></script>", 100, ("script",))
@example('<b c/="x = " d>z"><a href="y">', 100, ())
@example("\xe9\x85\xa0" * 40 + '<a href="/\xff"><base\xe9 href=\xe0><iframe src=\xe9>', 100, ())
def test_pages_are_read_alike(text: str, looks: int, more: Collection[str]) -> None:
    """Broken tags, quotes, comments, raw elements, NUL and letters of any width included."""
    assert_alike_on_page(text, looks, more)


@in_both
@settings(max_examples=examples(2_000))
@given(references, st.sampled_from(BASES), st.sampled_from([20, 150, 8_192]), st.sampled_from([-1, 90, 1 << 62]))
@example(["/a#\u4f8b", "#\ud800", "/\u00e9#", "//1.2.3.400/x", ".././../b?"], BASES[1], 8_192, 1 << 62)
def test_references_are_joined_alike(references: list[str], base: str, longest: int, most: int) -> None:
    """With hosts, dots, fragments and none of them; long ones, and more than are wanted."""
    assert_alike_on_references(references, base, longest, most)


@settings(max_examples=examples(1_000))
@given(st.lists(urls, max_size=8), urls)
@example(["http://a.example", "http://a.example/", "/\u4f8b/\ud800/x/y"], "http://a.example/")
def test_other_origins_are_found_alike(urls: list[str], origin: str) -> None:
    """In texts of any letters, with few slashes and none."""
    assert_alike_on_urls(urls, origin)


@settings(max_examples=examples(1_000))
@given(keys, st.sampled_from([4, 16, 1 << 10]))
@example([[0, 1, 2, -1, (1 << 64) - 1, 1 << 64, -(1 << 64)]], 4)
@example([[2, 4, 6, 2, 4, 4, 8]], 4)
def test_keys_are_remembered_alike_and_as_one_by_one(batches: list[list[int]], places: int) -> None:
    """Keys that recur, that share a pair, that are negative, and that have more than 64 bits."""
    assert_alike_on_keys(batches, places)


@in_both
@pytest.mark.system
def test_stored_pages_are_read_alike() -> None:
    """Those that `make system` has fetched."""
    pages = sorted((PROJECT / "build" / "corpora").rglob("*.htm*"))
    assert pages
    for page in pages:
        assert_alike_on_page(page.read_text("utf-8", "replace"))
        assert_alike_on_page(page.read_text("latin-1"), more=("img", "title"))


@in_both
@pytest.mark.parametrize("charset", ["utf-8", "latin-1"])
def test_bombs_are_read_alike(charset: str) -> None:
    """All that are known of pages."""
    for genome in bombs_of("page"):
        assert_alike_on_page(grown(genome, 8_192).decode(charset, "replace"))


@each_twin
def test_no_bomb_costs_many_usual_pages(twin: Any) -> None:
    """The cost is linear in the size of any page: in the reader alone, which is a small part of a page's cost."""
    usual = grown(USUAL["page"], BOMB_BYTES).decode()

    def read(text: str) -> None:
        for _, _, _, written, _ in twin.runs(text, 40_000, ("img", "title")):
            twin.attributes(written)

    for genome in bombs_of("page"):
        text = grown(genome, BOMB_BYTES).decode("utf-8", "replace")
        assert_costs(TIMES, partial(read, text), partial(read, usual))


@each_twin
def test_nothing_is_kept(twin: Any) -> None:
    """Memory is given back, also by a reader that is left in the midst of a page."""
    page = "".join(PIECES).replace("<plaintext>", "") * 3
    parts = Joiner(BASES[0]).parts

    def use() -> None:
        for text in (page, *(page.encode(narrow, "ignore").decode(narrow) for narrow in ("ascii", "latin-1"))):
            list(twin.runs(text, 1_000, ("img", "title"), True))
            next(twin.runs(text, 1_000))
            twin.attributes(text)
        twin.join_plain([*REFERENCES, "//1.2.3.400/x"], parts, 8_192, 1 << 62)
        twin.other_origins(REFERENCES, "/")
        twin.remember(memoryview(bytearray(1 << 10)).cast("Q"), 63, [*range(-500, 500), 1 << 63])

    def blocks_after(times: int) -> int:
        for _ in range(times):
            use()
        gc.collect()
        return sys.getallocatedblocks()

    before = blocks_after(300)  # Python has specialised what it runs, and filled its caches
    assert blocks_after(300) - before < 150


@in_both
def test_wrong_arguments_are_errors_in_c() -> None:
    """As in Python, rather than reads of memory that is no text."""
    compiled = TWINS["compiled"]
    parts: Any = Joiner(BASES[0]).parts
    table = memoryview(bytearray(1 << 10)).cast("Q")
    for call in (
        lambda: compiled.runs(b"<a>", 1),
        lambda: compiled.runs(b"<a>\xe9", 1),
        lambda: compiled.runs("<a>"),
        lambda: compiled.runs("<a>", "1"),
        lambda: compiled.attributes(None),
        lambda: compiled.join_plain(("/a",), parts, 9, 9),
        lambda: compiled.join_plain(["/a", 1], parts, 9, 99),
        lambda: compiled.join_plain(["/a"], parts[:3], 9, 9),
        lambda: compiled.join_plain(["//b/"], parts._replace(origin_of=lambda _: 1), 9, 9),
        lambda: compiled.other_origins(["http://a.example/"]),
        lambda: compiled.other_origins(["http://a.example/", None], "http://b.example/"),
        lambda: compiled.other_origins(["http://a.example/"], b"http://a.example/"),
        lambda: compiled.other_origins(None, "http://a.example/"),
        lambda: compiled.remember(table, 63, (1,)),
        lambda: compiled.remember(table, 63, [1, "2"]),
        lambda: compiled.remember(table, "63", [1]),
        lambda: compiled.remember(None, 63, [1]),
    ):
        with pytest.raises((TypeError, AttributeError)):
            list(call())


@in_both
def test_a_table_is_written_only_within_its_bounds() -> None:
    """Whatever the mask; what cannot be written, or is in pieces, is refused."""
    compiled = TWINS["compiled"]
    table = memoryview(bytearray(1 << 10)).cast("Q")
    assert compiled.remember(table, 63, [63, 1 << 62]) == [0, 1]
    for mask in (64, 127, 1 << 60, (1 << 64) - 1):
        with pytest.raises(IndexError):
            compiled.remember(table, mask, [mask])
        with pytest.raises(IndexError):
            compiled.remember(table[:1], 0, [1])
    for mask in (-1, 1 << 64):
        with pytest.raises(OverflowError):
            compiled.remember(table, mask, [1])
    for refused in (table.toreadonly(), table[::2]):
        with pytest.raises(BufferError):
            compiled.remember(refused, 3, [1])


@pytest.mark.parametrize(("pure", "code"), [("", "C" if len(TWINS) > 1 else "Python"), ("1", "Python")])
def test_the_environment_may_choose_python(pure: str, code: str) -> None:
    """PURE_BIGCRAWL does; otherwise C is taken if it is there."""
    command = [sys.executable, "-c", "from bigcrawl.scan import CODE; print(CODE)"]
    environment = {**os.environ, "PURE_BIGCRAWL": pure}
    assert subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip() == code


def test_tests_are_told_which_reader_runs() -> None:
    """The fixture `twin` has its own one called everywhere."""
    modules: tuple[Any, ...] = (markup, tags, canonical, link_graph)
    for name, twin in TWINS.items():
        with called(name):
            assert (modules[0].runs, modules[1].runs, modules[0].attributes) == (twin.runs, twin.runs, twin.attributes)
            assert modules[2].join_plain == twin.join_plain
            assert (modules[3].other_origins, modules[3].remember) == (twin.other_origins, twin.remember)
