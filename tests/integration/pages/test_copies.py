"""A crawl of a site with copies: they refer to their original, and lead nowhere if so set."""

from __future__ import annotations

import json
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlsplit

import pytest

from tests.support.crawling.crawls import Crawl
from tests.support.crawling.verdicts import indexes
from tests.support.running.processes import no_strays_below
from tests.support.servers.serving import at_work
from tests.unit.warc.reading import read_checked

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SETTINGS = {"BIGCRAWL_HOST_DELAY": 0, "BIGCRAWL_PARTITIONS": 2}
DROPPED = {"BIGCRAWL_WARC_COPIES": "by-reference", "BIGCRAWL_COPY_LINKS": "drop"}
COPIES = [f"/copy{number}/" for number in range(4)]
BODY = "<p>The same words under several names.</p>" * 30 + '<a href="deeper.html">.</a>'


class Site(BaseHTTPRequestHandler):
    """A page that links to others, which have one body, each with a relative link."""

    protocol_version = "HTTP/1.1"
    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        if self.path == "/":
            self.answer(200, "".join(f'<a href="{path}">.</a>' for path in COPIES))
        elif self.path in COPIES:
            self.answer(200, BODY)
        elif self.path.endswith("/deeper.html"):
            self.answer(200, self.path)
        else:
            self.answer(404, "")

    def answer(self, status: int, text: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def serving(address: str = "127.0.0.1") -> Iterator[str]:
    with at_work(ThreadingHTTPServer((address, 0), Site)) as server:
        Site.asked.clear()
        yield f"http://{address}:{server.server_address[1]}"


@pytest.mark.parametrize("copies", ["by-reference", "over-nodes"])
def test_copies_refer_to_their_original_and_lead_nowhere(tmp_path: Path, copies: str) -> None:
    """One of the pages with the body is whole, and its link is followed; the others' links are counted as dropped."""
    with (
        no_strays_below(tmp_path),
        serving() as url,
        Crawl(tmp_path / "crawl", [f"{url}/"], SETTINGS | DROPPED | {"BIGCRAWL_WARC_COPIES": copies}) as crawl,
    ):
        assert crawl.run(300) == 0
        log = crawl.log.read_text()
    assert set(COPIES) <= set(Site.asked), "the copies themselves are fetched"
    records = [record for path in (tmp_path / "crawl" / "warc").glob("*.gz") for record in read_checked(path)]
    pages = {urlsplit(r.headers["WARC-Target-URI"]).path: r for r in records if r.type in ("response", "revisit")}
    (whole,) = [path for path in COPIES if pages[path].type == "response"]
    for path in set(COPIES) - {whole}:
        assert pages[path].headers["WARC-Refers-To"] == pages[whole].headers["WARC-Record-ID"]
    assert [path for path in Site.asked if path.endswith("deeper.html")] == [f"{whole}deeper.html"]
    assert "Traceback" not in log
    for key in "dropped/copy", "warc/copies":
        assert f"'bigcrawl/{key}': {len(COPIES) - 1}," in log


@pytest.mark.system
def test_table_of_pages_has_the_keys_of_copies_and_the_pages_of_links(tmp_path: Path) -> None:
    """`frontier copies` names URLs by keys, and links of a batch send no Referer; the table says what they are."""
    from pyarrow import parquet

    indexed = {"BIGCRAWL_WARC_INDEX": "cdxj,parquet"}
    with serving() as url, Crawl(tmp_path / "crawl", [f"{url}/"], SETTINGS | indexed) as crawl:
        assert crawl.run(300) == 0
        crawl.frontier("copies", str(tmp_path / "copies.jsonl"))
    tables = (parquet.read_table(path) for path in indexes(tmp_path / "crawl" / "warc", ".parquet"))
    rows = [row for table in tables for row in table.to_pylist() if not row["url"].endswith("robots.txt")]
    path_of = {row["key"]: row["url"].removeprefix(url) for row in rows}
    lines = [json.loads(line) for line in (tmp_path / "copies.jsonl").read_text().splitlines()]
    [original] = {path_of[line["original"]] for line in lines}
    assert {path_of[line["page"]] for line in lines} == set(COPIES) - {original}
    parents = {path_of[row["key"]]: row["parent"] for row in rows}
    assert parents.pop("/") is None
    deeper = {path: url + path.removesuffix("deeper.html") for path in parents if "deeper" in path}
    assert parents == dict.fromkeys(COPIES, f"{url}/") | deeper


def test_whoever_publishes_the_page_of_another_site_keeps_nobody_from_its_links(tmp_path: Path) -> None:
    """Two sites, which are addresses here, have the same page: links of both are followed, whichever comes first."""
    with (
        no_strays_below(tmp_path),
        serving() as one,
        serving("127.0.0.2") as other,
        Crawl(tmp_path / "crawl", [f"{one}{COPIES[0]}", f"{other}{COPIES[1]}"], SETTINGS | DROPPED) as crawl,
    ):
        assert crawl.run(300) == 0
        log = crawl.log.read_text()
    assert {f"{path}deeper.html" for path in COPIES[:2]} <= set(Site.asked)
    assert "'bigcrawl/warc/copies': 1," in log
    assert "bigcrawl/dropped/copy" not in log


def test_copies_are_listed_where_the_files_are_only_in_the_store(tmp_path: Path) -> None:
    """The newest points are read; without the store, the partitions that may know more are told."""
    settings = SETTINGS | {"BIGCRAWL_STORE_URL": f"file://{tmp_path / 'store'}"}
    with (
        no_strays_below(tmp_path),
        serving() as url,
        Crawl(tmp_path / "crawl", [f"{url}/"], settings) as crawl,
    ):
        assert crawl.run(300) == 0
        crawl.frontier("copies", str(tmp_path / "here.jsonl"))
        state = tmp_path / "crawl" / "state" / crawl.name
        for directory in state.glob("p0*"):
            directory.rename(tmp_path / directory.name)
        found = crawl.asked("copies", str(tmp_path / "stored.jsonl"))
        assert (found["exact"], found["elsewhere"]) == (len(COPIES) - 1, 0)
        lines = [sorted((tmp_path / name).read_text().splitlines()) for name in ("here.jsonl", "stored.jsonl")]
        assert lines[0] == lines[1]
        copies = [json.loads(line) for line in lines[0]]
        [original] = {copy["original_url"] for copy in copies}
        assert {copy["page_url"] for copy in copies} | {original} == {url + path for path in COPIES}
        for path in (tmp_path / "crawl" / "warc").glob("*.cdxj"):
            path.unlink()
        assert crawl.asked("copies", str(tmp_path / "unnamed.jsonl"))["named"] == 0
        assert "_url" not in (tmp_path / "unnamed.jsonl").read_text()
        assert not list(state.glob("export-*"))
        assert not list(state.glob("p0*")), "what a node has is changed by nodes alone"
        crawl.settings["BIGCRAWL_STORE_URL"] = None
        before_ns = state.stat().st_mtime_ns
        said = crawl.frontier("copies", str(tmp_path / "none.jsonl")).stdout
        assert state.stat().st_mtime_ns == before_ns, "without a store, whoever may only read there may call it"
    assert "partitions have no files here, and may list more copies" in said


@pytest.mark.long("three commands; `copies` reads the store in another one here")
def test_commands_look_into_the_store_where_no_files_are(tmp_path: Path) -> None:
    """`explain`, `budget` and `plds` say the same as beside the files, and what they read, or what is missing."""
    settings = {
        "BIGCRAWL_HOST_DELAY": 0,
        "BIGCRAWL_PARTITIONS": 2,
        "BIGCRAWL_STORE_URL": f"file://{tmp_path / 'store'}",
    }
    with (
        no_strays_below(tmp_path),
        serving() as url,
        Crawl(tmp_path / "crawl", [f"{url}/"], settings) as crawl,
    ):
        assert crawl.run(300) == 0
        questions = (("explain", f"{url}{COPIES[0]}"), ("budget", "127.0.0.1"), ("plds",))
        here = [crawl.asked(*words) for words in questions]
        state = tmp_path / "crawl" / "state" / crawl.name
        for directory in state.glob("p0*"):
            directory.rename(tmp_path / directory.name)
        stored = [crawl.asked(*words) for words in questions]
        assert [found.pop("files")["store"] for found in stored[:2]] == [settings["BIGCRAWL_STORE_URL"]] * 2
        assert [found.pop("files")["store"] for found in here[:2]] == [None] * 2
        assert (here[2].pop("from_store"), stored[2].pop("from_store")) == (0, 1)
        assert stored == here
        assert here[0]["outcome"]["name"] == "status:200"
        assert "the newest point in file://" in crawl.frontier(*questions[0]).stdout
        assert crawl.asked("plds", "--here")["unread"] == 1
        assert not list(state.glob("export-*"))
        assert not list(state.glob("p0*"))
        crawl.settings["BIGCRAWL_STORE_URL"] = None
        for words in questions:
            assert "call it on a machine that has them, or with the crawl's BIGCRAWL_STORE_URL" in " ".join(
                crawl.frontier(*words).stdout.split()
            )
