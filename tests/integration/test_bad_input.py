"""Whatever is wrong before a crawl begins: one clear line, status 1, no traceback, and nothing touched."""

from __future__ import annotations

import os
import socketserver
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from tests.support.running import warm
from tests.support.servers.serving import at_work

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator, Mapping
    from pathlib import Path

# Not fetched, for its address is closed: a crawl of it is over at once.
SEED = "http://127.0.0.1:9/"


def run(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command of Python modules in a directory, in bigcrawl's own project."""
    return warm.run(arguments, cwd=directory, env={**os.environ, "SCRAPY_SETTINGS_MODULE": "bigcrawl.settings"})


def crawl(
    directory: Path, settings: Mapping[str, object] | None = None, *options: str, seeds: str = SEED
) -> subprocess.CompletedProcess[str]:
    """Run `scrapy crawl broad` with the given settings."""
    chosen = {"LOG_LEVEL": "WARNING", "BIGCRAWL_PARTITIONS": 4, **(settings or {})}
    words = [word for name, value in chosen.items() for word in ("-s", f"{name}={value}")]
    return run(directory, "scrapy", "crawl", "broad", "-a", f"seeds={seeds}", *words, *options)


def refusal(done: subprocess.CompletedProcess[str]) -> str:
    """The one line that a refused crawl says."""
    assert done.returncode == 1, done.stderr
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    return lines[0]


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("BIGCRAWL_PARTITION", 3, "unknown setting BIGCRAWL_PARTITION; did you mean BIGCRAWL_PARTITIONS?"),
        ("BIGCRAWL_PARTITIONS", 0, "BIGCRAWL_PARTITIONS is '0'; must be a whole number from 1 to 65536"),
        ("BIGCRAWL_HOST_DELAY", "fast", "BIGCRAWL_HOST_DELAY is 'fast'; must be a number from 0 to 86400 s"),
        ("BIGCRAWL_CRAWL", "a/b", "BIGCRAWL_CRAWL is 'a/b'; must be 1 to 100 letters"),
        ("BIGCRAWL_REDIS_URL", "http://a", "BIGCRAWL_REDIS_URL is 'http://a': Redis URL must specify one of"),
        ("BIGCRAWL_REDIS_URL", "unix:///nowhere/redis.sock", "Redis does not answer: "),
        ("BIGCRAWL_PRIORITIZER", "ranks", "BIGCRAWL_PRIORITIZER is 'ranks'; did you mean rank? must be one of"),
        ("BIGCRAWL_STATE_DIR", "a-file", "a-file/broad/redis: [Errno 20] Not a directory"),
        ("BIGCRAWL_WARC_DIR", "a-file", "a-file: File exists; name a directory"),
        (
            "BIGCRAWL_WARC_DIR",
            "/proc/nowhere",
            "BIGCRAWL_WARC_DIR is /proc/nowhere: No such file or directory",
        ),
    ],
)
def test_wrong_setting_is_one_line(tmp_path: Path, name: str, value: object, said: str) -> None:
    """A setting that is unknown, out of bounds, or leads nowhere, is named with what would be right."""
    (tmp_path / "a-file").touch()
    assert said in refusal(crawl(tmp_path, {"BIGCRAWL_START_WAIT": 0, name: value}))
    assert {path.name for path in tmp_path.iterdir()} <= {"a-file", "state", "warc"}


def test_wrong_setting_is_one_line_in_each_of_scrapys_processes(tmp_path: Path) -> None:
    """A project's script that uses CrawlerProcess gets the line too, and items of an earlier run stay."""
    items = tmp_path / "items.jsonl"
    items.write_text('{"kept": 1}\n')
    done = crawl(tmp_path, {"BIGCRAWL_MAX_PAGE": 1, "FORCE_CRAWLER_PROCESS": 1}, "-O", str(items))
    assert "unknown setting BIGCRAWL_MAX_PAGE; did you mean BIGCRAWL_MAX_PAGES?" in refusal(done)
    assert items.read_text() == '{"kept": 1}\n'


class _OldRedis(socketserver.StreamRequestHandler):
    """Answers the few commands of a client that connects as an old server does."""

    server: _Server

    def handle(self) -> None:
        while (head := self.rfile.readline()).startswith(b"*"):
            words = [self._word() for _ in range(int(head[1:]))]
            self.wfile.write(self._reply(words[0].upper()))

    def _word(self) -> bytes:
        size = int(self.rfile.readline()[1:])
        return self.rfile.read(size + 2)[:-2]

    def _reply(self, command: bytes) -> bytes:
        if command == b"HELLO" and self.server.knows_hello:
            return b"%2\r\n+server\r\n+redis\r\n+proto\r\n:3\r\n"
        if command == b"INFO":
            info = f"# Server\r\nredis_version:{self.server.version}\r\nrun_id:1\r\n".encode()
            return b"$%d\r\n%s\r\n" % (len(info), info)
        if command == b"PING":
            return b"+PONG\r\n"
        return b"-ERR unknown command '%s'\r\n" % command


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    version = ""
    knows_hello = False


@contextmanager
def old_redis(path: Path, version: str, *, knows_hello: bool) -> Iterator[str]:
    """No old server can be had beside the embedded one: its answers to a client's first words will do."""
    with at_work(_Server(str(path), _OldRedis)) as server:
        server.version, server.knows_hello = version, knows_hello
        yield f"unix://{path}"


@pytest.mark.parametrize(("version", "knows_hello"), [("6.2.14", True), ("5.0.14", False)])
def test_old_redis_is_one_line(tmp_path: Path, version: str, *, knows_hello: bool) -> None:
    """A server that lacks what the frontier needs is named by its version."""
    with old_redis(tmp_path / "old.sock", version, knows_hello=knows_hello) as url:
        said = refusal(crawl(tmp_path, {"BIGCRAWL_REDIS_URL": url}))
    assert f"version {version}; bigcrawl needs 7.0 or later" in said


def test_seeds_that_cannot_be_read_are_one_line(tmp_path: Path) -> None:
    """Missing seeds, a missing file and a directory stop the start, from scrapy and from the main job."""
    for seeds in ("", "missing.txt", "."):
        assert f"seeds={seeds!r} is neither URLs nor a file" in refusal(crawl(tmp_path, seeds=seeds))
    done = run(tmp_path, "bigcrawl.main_job", "--seeds", "missing.txt", "--")
    assert "SEEDS='missing.txt' must be URLs or a file of them" in refusal(done)


def test_a_focused_crawl_without_a_topic_is_one_line(tmp_path: Path) -> None:
    """It says what to write; only errors are shown, since a busy machine may add a warning at the end."""
    done = run(tmp_path, "scrapy", "crawl", "focused", "-a", f"seeds={SEED}", "-s", "LOG_LEVEL=ERROR")
    assert 'there is no topic: give one, as -a topic="bees honey beekeep*"' in refusal(done)


def test_rubbish_among_seeds_is_told_and_left_out(tmp_path: Path) -> None:
    """Lines that are no URL are named, at most five of them; with no other line the crawl does not begin."""
    rubbish = [f"rubbish {number} \ufffd" for number in range(8)]
    seeds = tmp_path / "seeds.txt"
    seeds.write_bytes("\n".join(rubbish).encode() + b"\n\xff\xfe\x00binary\n\n# a remark\n")
    done = crawl(tmp_path, seeds=str(seeds))
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    warnings = [line for line in done.stderr.splitlines() if " WARNING: " in line]
    assert ["seed 1 is skipped" in warnings[0], "9 seeds in all were skipped" in warnings[-1]] == [
        True,
        True,
    ]
    assert len(warnings) == 6
    assert "there are no seeds" in done.stderr.splitlines()[-1]

    seeds.write_text(f"{rubbish[0]}\n{SEED}\n")
    done = crawl(tmp_path, seeds=str(seeds))
    assert done.returncode == 0, done.stderr
    assert "seed 1 is skipped" in done.stderr
    assert "1 URLs are withheld" in done.stdout


def test_state_that_does_not_fit_is_one_line(tmp_path: Path, redis_url: str, crawl_name: str) -> None:
    """Another partition count, another crawl's directory, a directory without its Redis, a Redis without its
    directory, a damaged record: each is told and left as it is.
    """
    mine = {
        "BIGCRAWL_STATE_DIR": "mine",
        "BIGCRAWL_REDIS_URL": redis_url,
        "BIGCRAWL_CRAWL": crawl_name,
        "BIGCRAWL_PARTITIONS": 8,
        # So that the seed ends, by a refused connection.
        "BIGCRAWL_ALLOW_PRIVATE_ADDRESSES": 1,
        "BIGCRAWL_ROBOTS": "ignore-i-own-these-hosts",
        "RETRY_ENABLED": 0,
        "LOG_LEVEL": "ERROR",
    }
    begun = crawl(tmp_path, mine)
    assert begun.returncode == 0, begun.stderr
    said = refusal(crawl(tmp_path, {**mine, "BIGCRAWL_PARTITIONS": 9}))
    assert f"BIGCRAWL_PARTITIONS is 9, but crawl '{crawl_name}' was begun with 8" in said

    said = refusal(crawl(tmp_path, {**mine, "BIGCRAWL_STATE_DIR": "elsewhere"}))
    assert f"the Redis holds crawl '{crawl_name}', but its files are not in" in said

    empty = redis_url.replace("db=0", "db=15")
    said = refusal(crawl(tmp_path, {**mine, "BIGCRAWL_REDIS_URL": empty}))
    assert f"holds crawl '{crawl_name}', but the Redis does not know it" in said

    assert crawl(tmp_path, {**mine, "BIGCRAWL_CRAWL": f"{crawl_name}-other"}).returncode == 0
    (tmp_path / "mine" / crawl_name).rename(tmp_path / "aside")
    (tmp_path / "mine" / f"{crawl_name}-other").rename(tmp_path / "mine" / crawl_name)
    said = refusal(crawl(tmp_path, mine))
    assert f"belongs to another crawl than '{crawl_name}' in this Redis" in said

    (tmp_path / "mine" / crawl_name / "crawl.json").write_text("{torn")
    said = refusal(crawl(tmp_path, mine))
    assert "crawl.json: damaged at byte 0: expected a JSON crawl record" in said
