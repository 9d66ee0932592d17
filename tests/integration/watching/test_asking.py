"""`scrapy frontier` as it is typed: of a crawl that has ended, of none, and with wrong words."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from warcio.archiveiterator import ArchiveIterator

from bigcrawl.commands.actions import ACTIONS
from bigcrawl.redisdb.embedded import EmbeddedServer, running_url
from tests.support.crawling.crawls import Crawl, SimulatedWeb
from tests.support.running import warm

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Crawl, dict[str, int]]]:
    """A finished crawl with an embedded server, which is stopped; and the statuses of its URLs."""
    path = tmp_path_factory.mktemp("asking")
    settings = {"BIGCRAWL_HOST_DELAY": 0, "BIGCRAWL_PARTITIONS": 4}
    with SimulatedWeb(path / "web", hosts=3, pages=12) as web, Crawl(path / "crawl", web.seeds, settings) as crawl:
        assert crawl.run() == 0
        yield crawl, web.expected()


def test_status_answers_for_a_crawl_that_is_stopped(ended: tuple[Crawl, dict[str, int]]) -> None:
    """What the crawl came to is told from its files, and its server is stopped again."""
    crawl, expected = ended
    status = crawl.status()
    assert status["finished"]
    assert status["pages"] == len(expected)
    assert running_url(crawl.redis_directory) is None
    assert "none runs" in crawl.frontier("status").stdout


def test_no_project_is_needed(ended: tuple[Crawl, dict[str, int]], tmp_path: Path) -> None:
    """`python -m bigcrawl` answers in any directory, with the same words, statuses and help."""
    crawl, _ = ended
    env = {name: value for name, value in os.environ.items() if name != "SCRAPY_SETTINGS_MODULE"}

    def asked(*words: str) -> subprocess.CompletedProcess[str]:
        return warm.run(["bigcrawl", *words, *crawl.options()], cwd=tmp_path, env=env)

    found, expected = json.loads(asked("status", "--json").stdout), crawl.status()
    assert found["sizes"].pop("redis") > 0 < expected["sizes"].pop("redis")  # it differs each time
    assert found == expected
    wrong = asked("statsu")
    assert wrong.returncode == 2
    assert wrong.stderr.endswith("did you mean status? `python -m bigcrawl -h` lists all\n")
    assert "  python -m bigcrawl hosts --state snoozed" in asked("hosts", "-h").stdout
    assert asked("status", "-s", "BIGCRAWL_CRAWL").returncode == 2


def test_crawl_that_starts_while_it_is_asked_keeps_its_server(ended: tuple[Crawl, dict[str, int]]) -> None:
    """Who asks joins the users of the server, and leaves it to those that are left."""
    crawl, _ = ended
    server = EmbeddedServer(crawl.redis_directory)
    server.start()
    try:
        assert crawl.status()["finished"]
        assert running_url(crawl.redis_directory) is not None
    finally:
        server.leave()


def test_crawl_that_never_was_is_told_with_those_that_are(ended: tuple[Crawl, dict[str, int]]) -> None:
    """The name is unknown: which ones there are, and how to say one; nothing is made."""
    crawl, _ = ended
    for words in (["status"], ["explain", "http://a.example/"]):
        said = refused(replace(crawl, name="never"), words, 1)
        assert "no crawl 'never'" in said
        assert "there are: test; choose with -s BIGCRAWL_CRAWL=" in said
    assert not (crawl.directory / "state" / "never").exists()


def test_place_without_a_crawl_is_told(tmp_path: Path) -> None:
    """Without a name and without a crawl: where was looked, and where else to look; nothing is made."""
    with Crawl(tmp_path / "crawl", []) as crawl:
        settings = {"BIGCRAWL_STATE_DIR": str(tmp_path / "nowhere")}
        crawl.options = lambda: [w for name in settings for w in ("-s", f"{name}={settings[name]}")]  # type: ignore[method-assign]
        said = refused(crawl, ["status"], 1)
    assert f"no crawl in {tmp_path / 'nowhere'}" in said
    assert "BIGCRAWL_STATE_DIR" in said
    assert not (tmp_path / "nowhere").exists()


def test_wrong_word_is_a_line_with_the_remedy(ended: tuple[Crawl, dict[str, int]]) -> None:
    """No usage of a page, nothing of event loops: what is wrong, and what would be right."""
    said = refused(ended[0], ["statsu"], 2)
    assert "no action 'statsu'; did you mean status? `scrapy frontier -h` lists all" in said
    said = refused(ended[0], ["explain", "a.example/page"], 1)
    assert "'a.example/page' cannot be crawled" in said
    assert "http://" in said


def refused(crawl: Crawl, words: list[str], status: int) -> str:
    """The one line on the error output of a command that is refused."""
    done = crawl.frontier(*words, check=False)
    assert done.returncode == status, done.stderr
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith("bigcrawl: ")
    return done.stderr


def test_help_is_of_the_action_that_is_named(ended: tuple[Crawl, dict[str, int]]) -> None:
    """Each has its own options and examples; without a name all actions are listed, a line each."""
    crawl, _ = ended
    said = crawl.frontier("-h").stdout
    assert said.count("\n") <= len(ACTIONS) + 9
    for name, action in ACTIONS.items():
        assert f"  {name} " in said
        assert action.about in said
    said = crawl.frontier("explain", "-h").stdout
    assert "scrapy frontier explain --find-page http://a.example/page" in said
    assert "--drop" not in said
    assert "--pld-delay" in crawl.frontier("delay", "--help").stdout


def test_options_may_stand_anywhere(ended: tuple[Crawl, dict[str, int]]) -> None:
    """Before the action, behind it, among its words."""
    crawl, _ = ended
    assert '"crawl"' in crawl.frontier("--json", "status").stdout
    assert crawl.asked("budget", "--urls", "7", "a.example")["rule_by_hand"] == {"budget": 7}
    assert crawl.asked("budget", "a.example", "--unset")["rule_by_hand"] is None


def test_page_is_found_in_its_file(ended: tuple[Crawl, dict[str, int]]) -> None:
    """File, offset and size of the record, and where a redirect leads: as another reader of WARC files sees them."""
    crawl, expected = ended
    url = next(url for url, status in sorted(expected.items()) if status == 301)
    assert "--find-page" in crawl.frontier("explain", url).stdout
    page: dict[str, Any] = crawl.asked("explain", url, "--find-page")["page"]
    with Path(page["file"]).open("rb") as file:
        file.seek(page["offset"])
        member = file.read(page["bytes"])
        file.seek(page["offset"])
        record = next(iter(ArchiveIterator(file)))
        assert record.rec_headers["WARC-Target-URI"] == url
        assert record.rec_headers["WARC-Type"] == "response"
        assert page["fetched"] == record.rec_headers["WARC-Date"]
        leads_to = record.http_headers["Location"]
    assert member[:2] == b"\x1f\x8b"
    assert page["redirects_to"].endswith(leads_to)
    text = crawl.frontier("explain", "--find-page", url).stdout
    assert f"leads to  {page['redirects_to']}" in text
    assert page["file"] in text


def test_page_that_is_in_no_file_is_told(ended: tuple[Crawl, dict[str, int]], tmp_path: Path) -> None:
    """Looked for elsewhere, or never fetched: that is said, and is no error."""
    crawl, expected = ended
    elsewhere = replace(crawl, settings={**crawl.settings, "BIGCRAWL_WARC_DIR": str(tmp_path)})
    assert elsewhere.asked("explain", next(iter(expected)), "--find-page")["page"] is None
    assert "in none of the files" in elsewhere.frontier("explain", next(iter(expected)), "--find-page").stdout
    assert crawl.asked("explain", "http://a.example/never", "--find-page")["page"] is None
