"""PLDs whose pages are those of others are noticed in whatever order they come, and nobody else is."""

from __future__ import annotations

import random
from itertools import permutations
from typing import TYPE_CHECKING

import pytest

from bigcrawl.config import read_config
from bigcrawl.content.sketches import sketches_of
from bigcrawl.features.mirrors.verdicts import is_sample, mirror_change_text
from bigcrawl.scheduler.partition.directory import verify_newest
from bigcrawl.scheduler.partition.fold.feature import features_of
from bigcrawl.scheduler.partition.partition import PartitionLimits
from tests.support.keys import pld_key
from tests.support.worlds.mirror_world import RULES, MirrorWorld, content_of
from tests.support.worlds.partition_world import make_runs_early
from tests.unit.content.pages import page

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

PLDS = ("a.example", "b.example", "c.example", "d.example")
PAGES = 96  # more than 64, because so many of them need not be 16 samples


def texts(pages: int, name: str = "page", since: int = 0) -> list[str]:
    return [f"{name} {number}" for number in range(since, since + pages)]


def portions(pages: Iterable[str], size: int) -> Iterator[list[str]]:
    rest = list(pages)
    while rest:
        yield rest[:size]
        rest = rest[size:]


def others_than(greatest: str, plds: Iterable[str] = PLDS) -> set[str]:
    return set(plds) - {greatest}


@pytest.mark.parametrize("order", list(permutations(PLDS[:3])))
def test_all_mirrors_but_the_one_with_most_links_are_noticed_in_any_order(
    tmp_path: Path, order: tuple[str, ...]
) -> None:
    """One after the other; the greatest one may come first, last or between them."""
    world = MirrorWorld(tmp_path)
    world.link("b.example", 5)
    for pld in order:
        world.fetch(pld, texts(PAGES))
        world.travel()
    assert world.mirrors_of(PLDS) == {"a.example", "c.example"}
    assert world.counted() == 2
    assert world.divisor("a.example") == RULES.divisor


@pytest.mark.parametrize("at_once", [1, 10, PAGES])
@pytest.mark.parametrize("times_told", [1, 3])
def test_mirrors_that_are_crawled_side_by_side_are_noticed(tmp_path: Path, at_once: int, times_told: int) -> None:
    """Each in its own order, some pages twice, and hints come more than once; with links alike, one stays as it is."""
    world, chance = MirrorWorld(tmp_path, times_told=times_told), random.Random(7)
    orders = {pld: list(portions(chance.sample(texts(PAGES), PAGES), at_once)) for pld in PLDS}
    for number in range(len(orders["a.example"])):
        for pld, order in orders.items():
            world.fetch(pld, [*order[number], *order[number][: at_once // 5]])
        world.travel()
    assert world.mirrors_of(PLDS) == others_than(max(PLDS, key=pld_key))


def gists_of(bodies: Iterable[bytes]) -> list[int]:
    """The keys by which a node knows pages where near copies are known."""
    found: list[int] = sketches_of(list(bodies)).gists.tolist()
    return found


def test_mirrors_that_print_a_date_on_each_page_are_noticed(tmp_path: Path) -> None:
    """By gists, side by side: short pages with ten words more, which differ on each page, and on each mirror."""
    world = MirrorWorld(tmp_path)
    world.link("b.example", 5)
    for since in range(0, 3 * PAGES, PAGES):
        for pld in PLDS:
            printed = (
                page(seed, 300) + f"<p>As of day {seed} this mirror of {seed * 7} pages has {pld} and more".encode()
                for seed in range(since, since + PAGES)
            )
            world.fetch_contents(pld, gists_of(printed))
        world.travel()
    assert world.mirrors_of(PLDS) == others_than("b.example")


@pytest.mark.parametrize("own_words", [30, 90, 300])
def test_sites_that_share_a_template_are_no_mirrors(tmp_path: Path, own_words: int) -> None:
    """By gists: 300 words are on all pages of all sites, and up to nine in ten of each page."""
    world, template = MirrorWorld(tmp_path), page(1, 300)
    for at, pld in enumerate(PLDS):
        pages = (template + page(10_000 * (1 + at) + seed, own_words) for seed in range(3 * PAGES))
        world.fetch_contents(pld, gists_of(pages))
    world.travel()
    assert world.mirrors_of(PLDS) == set()


def test_a_mirror_that_runs_ahead_is_noticed(tmp_path: Path) -> None:
    """A thousand pages before the greater one: as soon as that has come to its 64th page or some more."""
    world = MirrorWorld(tmp_path)
    world.link("b.example", 5)
    world.fetch("a.example", texts(1_000))
    world.travel()
    for done in range(0, PAGES, 8):
        world.fetch("a.example", texts(8, since=1_000 + done))
        world.fetch("b.example", texts(8, since=done))
        world.travel()
    assert world.mirrors_of(PLDS) == {"a.example"}


@pytest.mark.parametrize("times", [1, 3, 8])
def test_a_mirror_that_is_fetched_faster_is_noticed(tmp_path: Path, times: int) -> None:
    """Also if it is fetched as fast for a while afterwards: by and by, its lower budget tells."""
    world, done, mirrored = MirrorWorld(tmp_path), 0, 0
    world.link("b.example", 5)
    for number in range(100):
        pages = max(1, 8 * times // 20) if mirrored > 8 else 8 * times
        world.fetch("a.example", texts(pages, since=done))
        world.fetch("b.example", texts(8, since=8 * number))
        world.travel()
        done += pages
        mirrored += world.mirrors_of(PLDS) == {"a.example"}
    assert mirrored > 50


def samples_of(since: int) -> list[str]:
    return [text for text in texts(4_000, since=since) if is_sample(content_of(text))]


def test_a_site_of_which_few_pages_are_copied_is_soon_free(tmp_path: Path) -> None:
    """Whoever has more links, or luck within an octave, and copies 16 samples, and then one in 31, gains little."""
    world = MirrorWorld(tmp_path)
    world.link("b.example", 5)
    first, later = samples_of(0), samples_of(4_000)
    world.fetch("a.example", first)
    world.travel()
    world.fetch("b.example", first[:16])
    world.travel()
    was_mirror = []
    for number in range(24):
        world.fetch("a.example", later[number * 31 : number * 31 + 31])
        world.fetch("b.example", first[16 + number : 17 + number])
        world.travel()
        was_mirror.append(world.mirrors_of(PLDS) == {"a.example"})
    assert not any(was_mirror[2:])


def test_sixty_four_pages_are_enough(tmp_path: Path) -> None:
    """On average: of forty families of two, each with 64 pages, some half are noticed, and with 96 pages nearly all."""
    world = MirrorWorld(tmp_path)
    families = [(f"first{n}.example", f"second{n}.example") for n in range(40)]
    noticed = []
    for pages in (texts(64), texts(32, since=64)):
        for n, family in enumerate(families):
            for pld in family:
                world.fetch(pld, [f"{n} {text}" for text in pages])
        world.travel()
        noticed.append(world.counted())
    assert 10 < noticed[0] < 40
    assert noticed[1] >= 38


def test_what_is_known_outlives_owners(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the pages before a takeover that loses what is under way, half after it."""
    make_runs_early(monkeypatch, 8)
    world = MirrorWorld(tmp_path)
    for part in portions(texts(2 * PAGES), PAGES // 2):
        for pld in PLDS[:2]:
            world.fetch(pld, part)
        world.travel()
        world.fetch("a.example", ["on its way when its node died"])
        world.take_over()
    assert world.mirrors_of(PLDS[:2]) == others_than(max(PLDS[:2], key=pld_key), PLDS[:2])
    for partition in world.partitions:
        partition._check()
        assert verify_newest(partition.committed.own.path.parent) == []


def test_agencies_stories_make_no_mirrors(tmp_path: Path) -> None:
    """Twenty papers that print half of 400 stories to the byte, beside as many of their own, each in its own order."""
    world, chance = MirrorWorld(tmp_path), random.Random(3)
    papers = [f"paper{n}.example" for n in range(20)]
    for n, paper in enumerate(papers):
        world.link(paper, n)
    pages = {paper: chance.sample([*texts(400, "agency"), *texts(400, paper)], 800) for paper in papers}
    seen: set[str] = set()
    for at in range(0, 800, 10):
        for paper in papers:
            world.fetch(paper, pages[paper][at : at + 10])
        world.travel()
        seen |= world.mirrors_of(papers)
    assert seen == set()
    verdict = world.verdict(papers[0])
    assert verdict is not None
    assert verdict.shared > 20, "that half of its contents are elsewhere was noticed"


def test_pages_that_many_sites_have_make_no_mirrors(tmp_path: Path) -> None:
    """A login page at every other address, empty listings and errors with status 200, the same on all sites."""
    world = MirrorWorld(tmp_path)
    sites = [f"site{n}.example" for n in range(6)]
    common = ["login", "no results", "page not found", "cookies", "under construction", *texts(3, "licence")]
    for number in range(200):
        for site in sites:
            world.fetch(site, [f"{site} {number}", common[number % len(common)]])
        world.travel()
    assert world.mirrors_of(sites) == set()


def test_few_contents_that_come_again_and_again_make_no_mirror(tmp_path: Path) -> None:
    """A small site that is visited again, or refuses most pages in the same words, while nodes have forgotten both."""
    world = MirrorWorld(tmp_path)
    world.link("b.example", 5)
    common = samples_of(0)[:3]
    world.fetch("b.example", common)
    for _ in range(40):
        world.fetch("a.example", common)
        world.travel()
    assert world.mirrors_of(PLDS) == set()
    verdict = world.verdict("a.example")
    assert verdict is not None
    assert verdict.shared == verdict.weighed == len(common)


def test_a_mirror_with_pages_of_its_own_is_free_again(tmp_path: Path) -> None:
    """After some of them; it is told once each way, with the name of a host that has a URL, and not by the greater."""
    world = MirrorWorld(tmp_path)
    world.link("b.example", 5)
    for pld in PLDS[:2]:
        world.fetch(pld, texts(400))
    world.travel()
    for pld in (*PLDS[:2], "a.example"):
        world.find(pld)
    [caught] = world.told
    other = f"the last one on that with the key {pld_key('b.example'):016x}"
    weighed = f"64 of 64 of its contents are also on a PLD with more in-links, {other}"
    verdict = world.verdict("a.example")
    assert verdict is not None
    assert caught == mirror_change_text("a.example", verdict, RULES)
    assert caught == f"a.example is taken for a mirror and its budget divided by 20: {weighed}"
    assert world.counted() == 1
    for part in portions(texts(200, "my own"), 10):
        world.fetch("a.example", part)
        world.travel()
    assert world.mirrors_of(PLDS) == set()
    world.find("a.example")
    world.find("a.example")
    [_, freed] = world.told
    assert freed == f"a.example is taken for a mirror no longer and has its whole budget again: {weighed}"
    assert world.counted() == 0


def test_who_gets_more_links_is_the_original_from_then_on(tmp_path: Path) -> None:
    """The one that was taken for a mirror is free after some pages, and the other is one."""
    world = MirrorWorld(tmp_path)
    world.link("b.example", 5)
    for part in portions(texts(200), 10):
        for pld in PLDS[:2]:
            world.fetch(pld, part)
        world.travel()
    assert world.mirrors_of(PLDS) == {"a.example"}
    world.link("a.example", 100, since=50)
    for part in portions(texts(400, "later"), 10):
        for pld in PLDS[:2]:
            world.fetch(pld, part)
        world.travel()
    assert world.mirrors_of(PLDS) == {"b.example"}


def test_a_budget_is_lowered_where_a_url_is_placed(tmp_path: Path) -> None:
    """Of the mirror a twentieth passes in a turn, of the other all."""
    world = MirrorWorld(tmp_path)
    world.link("b.example", 5)
    for pld in PLDS[:2]:
        world.fetch(pld, texts(PAGES))
    world.travel()
    placed = {}
    for pld in PLDS[:2]:
        partition = world.partitions[pld_key(pld) % len(world.partitions)]
        before = dict(partition.state.turns.by_turn)
        for _ in range(30):
            world.find(pld)
        now = partition.state.turns.state.turn
        placed[pld] = partition.state.turns.by_turn.get(now, 0) - before.get(now, 0)
    assert placed["b.example"] == 30
    assert 0 < placed["a.example"] < 30


def test_without_the_rule_nothing_is_counted(tmp_path: Path) -> None:
    """Rows of a node with other settings change nothing."""
    limits = PartitionLimits(host_hot_max=10, features=features_of(read_config({"BIGCRAWL_TRAP_MIRROR_SHARE": 0})))
    world = MirrorWorld(tmp_path, limits=limits)
    for pld in PLDS[:2]:
        world.fetch(pld, texts(PAGES))
    world.travel()
    assert (world.mirrors_of(PLDS), world.verdict("a.example")) == (set(), None)


def one_to_import(tmp_path: Path, plds: int) -> tuple[MirrorWorld, MirrorWorld]:
    """A crawl that has fetched the same pages of some PLDs, of which b.example has most links, and a new one."""
    old, new = MirrorWorld(tmp_path / "old"), MirrorWorld(tmp_path / "new")
    for world in (old, new):
        world.link("b.example", 5)
    for pld in PLDS[:plds]:
        old.fetch(pld, texts(PAGES))
    old.travel()
    return old, new


def test_an_imported_crawl_knows_its_mirrors(tmp_path: Path) -> None:
    """By the rows of an export, however often these come; it goes on from there, and says nothing again."""
    old, new = one_to_import(tmp_path, 3)
    for pld in PLDS:
        old.find(pld)
    assert len(old.told) == 2
    for _ in range(2):
        new.import_from(old)
    assert new.mirrors_of(PLDS) == {"a.example", "c.example"}
    assert new.counted() == 2
    new.fetch("d.example", texts(PAGES))
    new.travel()
    for pld in PLDS:
        new.find(pld)
    assert new.mirrors_of(PLDS) == {"a.example", "c.example", "d.example"}
    assert [text.split()[0] for text in new.told] == ["d.example"]


def test_an_import_is_counted_where_mirrors_are_not_looked_for(tmp_path: Path) -> None:
    """So that the count is that of the table once they are looked for again."""
    old, _ = one_to_import(tmp_path, 3)
    features = features_of(read_config({"BIGCRAWL_TRAP_MIRROR_SHARE": 0}))
    new = MirrorWorld(tmp_path / "off", limits=PartitionLimits(host_hot_max=10, features=features))
    for _ in range(2):
        new.import_from(old)
    for pld in PLDS:
        new.find(pld)
    assert (new.mirrors_of(PLDS), new.told, new.counted()) == (set(), [], 2)


def test_an_import_changes_no_verdict_of_samples_that_were_counted_here(tmp_path: Path) -> None:
    """A running crawl judges by its own samples: else a PLD would be a mirror for ever, as no sample would free it."""
    old, new = one_to_import(tmp_path, 3)
    new.fetch("a.example", texts(40, "my own"))
    new.travel()
    for _ in range(2):
        new.import_from(old)
    assert new.mirrors_of(PLDS) == {"c.example"}
    assert new.counted() == 1
    for pages in (texts(PAGES, since=1_000), texts(200, "my own", since=40)):
        for pld in PLDS[:2]:
            new.fetch(pld, [f"{pld} {text}" for text in pages] if pages[0].startswith("my") else pages)
        new.travel()
        assert new.counted() == len(new.mirrors_of(PLDS))


def test_after_an_import_that_was_cut_off_the_count_is_that_of_the_verdicts(tmp_path: Path) -> None:
    """It brought samples of a mirror and no verdict; the PLD is free before it has ever been lowered here."""
    old, new = one_to_import(tmp_path, 2)
    new.import_from(old, ("sites", "samples"))
    new.fetch("a.example", texts(400, "my own"))
    new.travel()
    new.import_from(old)
    assert (new.mirrors_of(PLDS), new.counted()) == (set(), 0)
