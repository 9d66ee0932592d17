"""`scrapy frontier export` and `import`: a crawl goes on elsewhere, and nothing is lost or fetched twice."""

from __future__ import annotations

import json
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from tests.support.crawling.crawls import Crawl, SimulatedWeb
from tests.support.running.processes import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SETTINGS = {
    "BIGCRAWL_PARTITIONS": 8,
    "BIGCRAWL_HOST_DELAY": 0.1,
    "BIGCRAWL_LEASE_SECONDS": 5,
    "BIGCRAWL_STOP_GRACE": 60,  # what is under way at a stop ends on a slow machine, too
}
HOSTS, PAGES = 12, 15


@contextmanager
def half_done(tmp_path: Path, **settings: object) -> Iterator[tuple[SimulatedWeb, Crawl]]:
    """A web, and a crawl that has fetched a part of it and still runs."""
    with (
        SimulatedWeb(tmp_path / "web", hosts=HOSTS, pages=PAGES) as web,
        Crawl(tmp_path / "old", web.seeds, {**SETTINGS, **settings}, name="old") as crawl,
    ):
        crawl.start()
        wait_until(lambda: len(web.exchanges()) > HOSTS * PAGES // 3, "a part is fetched")
        yield web, crawl


def elsewhere(tmp_path: Path, web: SimulatedWeb, name: str = "new", **settings: object) -> Crawl:
    """A crawl in another directory with an embedded server of its own, once all hosts have rested.

    It learns what delay a host wants from that host's robots.txt, which is the first that it asks for.
    """
    longest_ms = max(web.web.crawl_delays_ms().values(), default=0)
    wait_until(lambda: time.time() * 1000 > web.exchanges()[-1].end_ms + longest_ms, "the hosts have rested")
    return Crawl(tmp_path / name, web.seeds, {**SETTINGS, **settings}, name=name)


def misses_nothing(web: SimulatedWeb, *kinds: str, delay_ms: int = 100) -> bool:
    """Whether all was fetched, politely; a crawl elsewhere asks for robots.txt itself."""
    report = web.report(delay_ms=delay_ms)
    assert report.kinds <= {"robots_refetched", *kinds}, str(report)
    return not report.missing


@pytest.mark.long("two crawls to their end; tests/unit/commands/moving has the parts")
def test_stopped_crawl_goes_on_under_another_name(tmp_path: Path) -> None:
    """No page is fetched twice and none is missing; what became of a page, rules and in-degrees go along."""
    file = tmp_path / "old.jsonl.zst"
    with half_done(tmp_path) as (web, old):
        old.terminate()
        assert old.wait(300) == 0
        old.frontier("budget", "example.com", "--urls", "7")
        old.frontier("delay", "example.org", "--delay", "3")
        old.frontier("blacklist", "add", "re:/never/")
        old.frontier("speed", "500/s")
        before = old.asked("status")
        fetched = next(one for one in web.exchanges() if one.status == 200 and one.target != "/robots.txt")
        url = f"http://{fetched.host}:{web.saved.port}{fetched.target}"
        told = old.asked("explain", url)
        said = old.asked("export", str(file))
        assert said["seen"] == before["urls"]["seen"]
        waiting = before["urls"]["seen"] - before["urls"]["ended"]
        assert waiting <= said["urls"] <= waiting + before["urls"]["inbox"], "known URLs in the inbox may be left out"
        assert file.stat().st_mode & 0o077 == 0, "it has the secret of the keys"
        with elsewhere(tmp_path, web) as new:
            assert new.asked("import", str(file))["urls"] == said["urls"]
            assert new.asked("budget", "example.com")["rule_by_hand"] == {"budget": 7}
            assert new.asked("delay", "example.org") == old.asked("delay", "example.org")
            assert new.asked("blacklist", "list") == old.asked("blacklist", "list")
            assert new.asked("speed")["by_hand"] == "500/s"
            assert new.run() == 0
            assert misses_nothing(web)
            again = new.asked("explain", url)
            assert [again[name] for name in ("outcome", "seen", "key")] == [
                told[name] for name in ("outcome", "seen", "key")
            ]
            assert again["pld_in_degree"] >= told["pld_in_degree"] > 0
            assert new.status()["urls"]["seen"] >= len(web.expected())


@pytest.mark.long("two crawls to their end; the commands by themselves: tests/unit/commands/moving")
def test_killed_crawl_is_exported_and_imported_twice(tmp_path: Path) -> None:
    """Nothing is lost; only what was under way when the node died is fetched again. A second import adds nothing."""
    file = tmp_path / "old.jsonl.zst"
    with half_done(tmp_path) as (web, old):
        old.kill()
        taken = len(old.taken())
        said = old.asked("export", str(file))
        with elsewhere(tmp_path, web) as new:
            new.frontier("import", str(file))
            new.frontier("import", str(file))
            assert new.status()["urls"]["inbox"] == 2 * said["urls"]
            assert new.run() == 0
        assert misses_nothing(web, "refetched", "over_retried"), "a kill forgets tries, too"
        report = web.report()
        again = sum(retried.retries - retried.allowed for retried in report.over_retried)
        assert report.overlap + again <= taken + 64


@pytest.mark.long("two crawls to their end; tests/unit/commands/moving has the parts")
def test_crawl_with_a_store_is_exported_where_its_files_are_not(tmp_path: Path) -> None:
    """The newest points and the inbox are enough."""
    file = tmp_path / "old.jsonl.zst"
    store = f"file://{tmp_path / 'store'}"
    with half_done(tmp_path, BIGCRAWL_STORE_URL=store) as (web, old):
        old.terminate()
        assert old.wait(300) == 0
        for directory in (old.directory / "state" / "old").glob("p0*"):
            directory.rename(tmp_path / directory.name)
        old.frontier("export", str(file))
        with elsewhere(tmp_path, web) as new:
            new.frontier("import", str(file))
            assert new.run() == 0
            assert misses_nothing(web)


def test_files_that_are_elsewhere_are_named(tmp_path: Path) -> None:
    """Without a store, an export on a machine without the files is no empty one."""
    file = tmp_path / "old.jsonl"
    with half_done(tmp_path) as (_, old):
        old.terminate()
        assert old.wait(300) == 0
        for directory in (old.directory / "state" / "old").glob("p0*"):
            directory.rename(tmp_path / directory.name)
        said = old.frontier("export", str(file), check=False)
        assert said.returncode == 1
        assert "export on a machine that has them" in said.stderr
        assert list(tmp_path.glob("*.jsonl*")) == []
        assert list((old.directory / "state" / "old").glob("export-*")) == []


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Crawl]:
    """The file of a crawl that was stopped, and the crawl."""
    tmp_path = tmp_path_factory.mktemp("exported")
    with half_done(tmp_path) as (_, old):
        old.terminate()
        assert old.wait(300) == 0
        old.frontier("export", str(tmp_path / "old.jsonl"))
    return tmp_path / "old.jsonl", old


def test_crawl_keeps_its_name(tmp_path: Path, exported: tuple[Path, Crawl]) -> None:
    """Imported in an empty directory, without a name."""
    file, _ = exported
    new = Crawl(tmp_path / "x", [], {**SETTINGS, "BIGCRAWL_CRAWL": None}, name="old")
    assert new.asked("import", str(file))["crawl"] == "old"
    assert new.status()["crawl"] == "old"
    assert new.asked("speed")["paused"] == [], "it may run"


def test_what_is_wrong_is_told_in_a_line(tmp_path: Path, exported: tuple[Path, Crawl]) -> None:
    """A file that is there, is cut, damaged or no export; other partitions; a crawl with other keys."""
    file, old = exported
    lines = file.read_text().splitlines(keepends=True)
    cut, damaged, other = tmp_path / "cut", tmp_path / "damaged", tmp_path / "other"
    cut.write_text("".join(lines[: len(lines) // 2]))
    row = next(number for number, line in enumerate(lines) if "table" in line)
    damaged.write_text("".join([*lines[:row], lines[row].replace('"keys":"', '"keys":"!'), *lines[row + 1 :]]))
    other.write_text('{"url": "http://a.example/"}\n')
    new = Crawl(tmp_path / "new", [], SETTINGS, name="new")

    def refused(crawl: Crawl, *words: str) -> str:
        said = crawl.frontier(*words, check=False)
        assert said.returncode == 1
        assert said.stderr.count("\n") == 1
        return said.stderr

    assert "exists already: choose another name" in refused(old, "export", str(file))
    assert "No such file" in refused(new, "import", str(tmp_path / "none"))
    assert "was not written by `scrapy frontier export`" in refused(new, "import", str(other))
    small = Crawl(tmp_path / "new", [], {"BIGCRAWL_PARTITIONS": 4}, name="new")
    assert "BIGCRAWL_PARTITIONS is 4, but was 8" in refused(small, "import", str(file))
    assert "is incomplete" in refused(new, "import", str(cut))
    assert new.asked("speed")["paused"] == [""], "it does not run before all is there"
    assert new.status()["standstill"][0] == "an import into this crawl was not completed: run it again"
    assert "of the file is damaged" in refused(new, "import", str(damaged))
    new.frontier("import", str(file))
    assert new.asked("speed")["paused"] == []

    header = json.loads(lines[0])
    header["record"]["hash_seed"] = "00" * 16
    other.write_text(json.dumps(header) + "\n" + "".join(lines[1:]))
    assert "makes its keys in another way" in refused(new, "import", str(other))
