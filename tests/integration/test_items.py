"""Items and kill -9: whatever page counts as fetched has its items in the feeds."""

from __future__ import annotations

import contextlib
import csv
import json
import re
import sqlite3
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import pytest
from scrapy.extensions.feedexport import BlockingFeedStorage

from tests.support.crawling.plain_project import REPOSITORY, Answer, NotedSite, PlainProject
from tests.support.running.processes import no_strays_below, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HOSTS, PAGES = 8, 8
AHEAD = 2  # so many pages more may be fetched before a kill, and those that are under way then
SETTINGS: dict[str, Any] = {
    "ADDONS": {"bigcrawl.addon.Addon": 500},
    "BIGCRAWL_ALLOW_PRIVATE_ADDRESSES": True,
    "BIGCRAWL_HOST_DELAY": 0.05,
    "BIGCRAWL_SERVER_DELAY": 0,
    "BIGCRAWL_PARTITIONS": 4,
}
JSON_LINES, CSV = ("-o", "items.jl"), ("-o", "items.csv")


@contextlib.contextmanager
def crawl(directory: Path, **settings: Any) -> Iterator[tuple[PlainProject, NotedSite, list[str]]]:
    """A project on the frontier, a site of some hosts, and the URLs of its pages."""
    with no_strays_below(directory), NotedSite() as site:
        urls = [site.url(f"127.0.0.{2 + n % HOSTS}", f"/{n}") for n in range(HOSTS * PAGES)]
        site.answers["/robots.txt"] = Answer(404)
        with PlainProject(directory / "project", **SETTINGS, **settings) as project:
            yield project, site, urls


def pages_of(site: NotedSite) -> int:
    return sum(path != "/robots.txt" for path in site.paths())


def kill_after(pages: int, project: PlainProject, site: NotedSite, urls: list[str], output: tuple[str, ...]) -> None:
    """Start the crawl, and kill -9 it when so many pages more were fetched."""
    before = pages_of(site)
    site.hold_after(pages + AHEAD)
    project.start(*urls, output=output)
    wait_until(lambda: pages_of(site) >= before + pages, "pages are fetched")
    project.kill()
    site.settle()


def in_json_lines(path: Path) -> list[str]:
    return [json.loads(line)["url"] for line in path.read_text().splitlines()]


def in_csv(path: Path) -> list[str]:
    with path.open(newline="") as file:
        return [row["url"] for row in csv.DictReader(file)]


def test_every_item_is_in_the_feeds_after_kills(tmp_path: Path) -> None:
    """kill -9 at several moments, and the same command again: every page's item at least once, in whole lines."""
    output = (*JSON_LINES, *CSV)
    with crawl(tmp_path) as (project, site, urls):
        for pages in (5, 12, 20):
            kill_after(pages, project, site, urls, output)
        log = project.run(*urls, output=output)
        assert "finished" in log
        assert set(in_json_lines(project.directory / "items.jl")) == set(urls)
        assert set(in_csv(project.directory / "items.csv")) == set(urls), "and no header among the rows"


class Uploads(BlockingFeedStorage):
    """Puts the whole file into its place at the end, as S3 has it."""

    def __init__(self, uri: str, *, feed_options: dict[str, Any] | None = None) -> None:
        self.path = Path(uri.removeprefix("upload:"))

    def _store_in_thread(self, file: IO[bytes]) -> None:
        file.seek(0)
        self.path.write_bytes(file.read())


@pytest.mark.parametrize(("output", "read"), [("items.jl", in_json_lines), ("items.csv", in_csv)])
def test_feed_is_begun_anew_with_the_crawl_only(tmp_path: Path, output: str, read: Callable[[Path], list[str]]) -> None:
    """`-O` empties the file of the crawl before; a crawl that goes on appends, one that is finished changes nothing."""
    with crawl(tmp_path) as (project, _, urls):
        path = project.directory / output
        path.write_text("of another crawl\n")
        project.run(*urls, output=("-O", output), BIGCRAWL_MAX_PAGES=20)
        first = read(path)
        assert 20 <= len(first) == len(set(first)) < len(urls)
        log = project.run(*urls, output=("-O", output))
        assert f"feed {output} is not emptied, because the crawl is resumed: items are appended" in log
        assert sorted(read(path)) == sorted(urls), "a clean stop repeats nothing"
        before = path.read_bytes()
        assert "finished" in project.run(*urls, output=("-O", output))
        assert path.read_bytes() == before


@pytest.mark.parametrize("output", ["items.json", "items.xml"])
def test_finished_crawl_leaves_whole_documents_alone(tmp_path: Path, output: str) -> None:
    """Formats with a beginning and an end get no second, empty one; what they cannot keep is said at the start."""
    with crawl(tmp_path) as (project, _, urls):
        path = project.directory / output
        log = project.run(*urls, output=("-O", output))
        assert f"feed {output} has all its items after kill -9, but is no valid document" in log
        before = path.read_bytes()
        assert before.count(b"127.0.0.") == len(urls)
        project.run(*urls, output=("-O", output))
        assert path.read_bytes() == before


def test_half_an_item_is_cut_off_and_comes_again(tmp_path: Path) -> None:
    """What a kill in the middle of a write leaves of a line does not spoil the item behind it."""
    output = (*JSON_LINES, *CSV)
    with crawl(tmp_path) as (project, site, urls):
        paths = [project.directory / name for name in ("items.jl", "items.csv")]
        site.hold_after(20)
        project.start(*urls, output=output)
        wait_until(lambda: all(path.exists() and path.read_bytes().count(b"\n") > 1 for path in paths), "items")
        project.kill()
        site.settle()
        for path in paths:
            assert path.read_bytes().endswith(b"\n")
            with path.open("ab") as file:
                file.write(b'{"url": "http://127' if path.suffix == ".jl" else b'"http://127.0.0.1/\nhalf')
        log = project.run(*urls, output=output)
        assert log.count("ended within an item") == 2
        assert set(in_json_lines(project.directory / "items.jl")) == set(urls)
        assert set(in_csv(project.directory / "items.csv")) == set(urls)


def test_feed_that_cannot_keep_its_items_is_named_at_the_start(tmp_path: Path) -> None:
    """One line each, with what it cannot do; a feed that can is not mentioned."""
    feeds = {
        "kept.jl": {"format": "jsonlines"},
        "kept.csv": {"format": "csv"},
        "packed.jl.gz": {"format": "jsonlines", "postprocessing": ["scrapy.extensions.postprocessing.GzipPlugin"]},
        "upload:late.jl": {"format": "jsonlines"},
    }
    storages = {"upload": f"{__name__}.Uploads"}
    with crawl(tmp_path, FEEDS=feeds, FEED_STORAGES=storages) as (project, _, urls):
        log = project.run(urls[0], output=("-o", "whole.xml"))
        said = [line.partition(" feed ")[2] for line in log.splitlines() if "see docs/items.md" in line]
        assert sorted(line.split(" ")[0] for line in said) == ["packed.jl.gz", "upload:late.jl", "whole.xml"]


def test_upload_does_not_replace_what_an_earlier_run_uploaded(tmp_path: Path) -> None:
    """A storage that can only replace is refused when the crawl goes on; under a name with the time it may."""
    with crawl(tmp_path, FEED_STORAGES={"upload": f"{__name__}.Uploads"}) as (project, _, urls):
        project.run(*urls, output=("-o", "upload:items.jl"), BIGCRAWL_MAX_PAGES=20)
        first = in_json_lines(project.directory / "items.jl")
        project.start(*urls, output=("-o", "upload:items.jl"))
        assert project.wait() == 1
        assert "would replace the items of the crawl's earlier runs: put %(time)s into its name" in project.log
        assert in_json_lines(project.directory / "items.jl") == first
        project.run(*urls, output=("-o", "upload:items-%(time)s.jl"))
        paths = project.directory.glob("items*.jl")
        assert sorted(url for path in paths for url in in_json_lines(path)) == sorted(urls)


def test_crawl_that_cannot_start_empties_no_feed(tmp_path: Path) -> None:
    """A Redis that is not there, for instance: the items of the run before stay."""
    with crawl(tmp_path) as (project, _, urls):
        path = project.directory / "items.jl"
        path.write_text("precious\n")
        project.start(*urls, output=("-O", "items.jl"), BIGCRAWL_REDIS_URL="unix:///nowhere", BIGCRAWL_START_WAIT=0)
        assert project.wait() == 1
        assert path.read_text() == "precious\n"


def test_recipe_for_batches_keeps_every_item(tmp_path: Path) -> None:
    """The pipeline of docs/items.md, killed in mid-crawl: every item is in its database at the end."""
    [recipe] = re.findall(
        r"^```python\n(.*?)^```", (REPOSITORY / "docs/items.md").read_text(), re.MULTILINE | re.DOTALL
    )
    with crawl(tmp_path, ITEM_PIPELINES={"plain.batches.BatchPipeline": 300}) as (project, site, urls):
        (project.directory / "plain" / "batches.py").write_text(recipe)
        for pages in (8, 20):
            kill_after(pages, project, site, urls, JSON_LINES)
        project.run(*urls, output=JSON_LINES)
        with contextlib.closing(sqlite3.connect(project.directory / "items.db")) as database:
            assert {url for (url,) in database.execute("SELECT url FROM items")} == set(urls)
