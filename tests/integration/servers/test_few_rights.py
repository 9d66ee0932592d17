"""Crawls and commands with the least rights that docs/operations.md states, on a Redis that logs every refusal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.crawling.crawls import Crawl, SimulatedWeb, held, second_process_of, shares
from tests.support.redis_servers.acl_rules import make_user
from tests.support.redis_servers.redis_server import PrivateRedis
from tests.support.running.processes import no_strays_below, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAME = "few"
SETTINGS = {"BIGCRAWL_HOST_DELAY": 1, "BIGCRAWL_PARTITIONS": 16}


@pytest.fixture
def server() -> Iterator[PrivateRedis]:
    with PrivateRedis(options={"acllog-max-len": "1000"}) as one:
        yield one


def refused(server: PrivateRedis) -> list[tuple[str, str]]:
    """What the server has refused: user and command or key. The library does without SETINFO."""
    log = [(str(entry["username"]), str(entry["object"])) for entry in server.client.acl_log()]
    return [entry for entry in log if entry[1] != "client|setinfo"]


@pytest.mark.timeout(600)
@pytest.mark.long("every command on a crawl of two nodes; test_rights has what a node may do")
def test_few_rights_suffice_for_two_nodes_a_takeover_and_each_command(tmp_path: Path, server: PrivateRedis) -> None:
    """A node joins, one is killed, the other takes over and ends the crawl; each command does its work."""
    with no_strays_below(tmp_path), SimulatedWeb(tmp_path / "web", hosts=16, pages=20) as web:
        settings = {**SETTINGS, "BIGCRAWL_REDIS_URL": make_user(server, "node", NAME)}
        with (
            Crawl(tmp_path / "crawl", web.seeds, settings, name=NAME) as first,
            second_process_of(first) as second,
        ):
            operator = second_process_of(first, "operator")
            operator.settings["BIGCRAWL_REDIS_URL"] = make_user(server, "operator", NAME)
            first.start()
            wait_until(lambda: len(web.exchanges()) > 30, "the crawl is under way")
            with held(first, web, by=operator):
                second.start()
                wait_until(lambda: len(shares(operator)) == 2, "both have joined")
            wait_until(lambda: shares(operator) == [8, 8], "each node owns half")
            _ask_all(operator, web.seeds[0])
            first.kill()
            assert second.wait(300) == 0
        report = web.report(delay_ms=1_000)
        assert not report.missing, report.missing
        assert refused(server) == []
        _ask_all(operator, web.seeds[0])
        operator.frontier("retry", web.seeds[0])
        operator.frontier("forget", web.seeds[1])
        operator.frontier("delete", NAME, "--yes")
        assert refused(server) == []
        assert not server.client.keys(f"bigcrawl:{{{NAME}*")


def _ask_all(crawl: Crawl, url: str) -> None:
    """Each command that leaves a crawl as it is, or changes it for this moment."""
    host = url.split("/")[2]
    for words in (
        ["status"],
        ["verify"],
        ["explain", url],
        ["explain", "http://never.met.example/"],
        ["rejected"],
        ["rejected", "--retry"],
        ["dead"],
        ["dead", "--retry", "--all"],
        ["dead", "--drop", "--all"],
        ["budget", "a.example"],
        ["budget", "a.example", "--urls", "100"],
        ["budget", "a.example", "--unset"],
        ["blacklist", "add", "bad.example"],
        ["blacklist", "list"],
        ["blacklist", "remove", "bad.example"],
        ["delay", "a.example"],
        ["delay", "a.example", "--delay", "5"],
        ["delay", "a.example", "--unset"],
        ["speed"],
        ["speed", "500/s"],
        ["speed", "--unset"],
        ["awaken", host],
        ["awaken", "--all"],
    ):
        text = crawl.result(*words).text
        assert "permit" not in text, (words, text)


def test_node_without_a_right_ends_with_its_name(tmp_path: Path, server: PrivateRedis) -> None:
    """At once, however long it would wait for a Redis that is away."""
    url = make_user(server, "node", NAME, "-zadd")
    settings = {**SETTINGS, "BIGCRAWL_REDIS_URL": url, "BIGCRAWL_START_WAIT": 86_400}
    with no_strays_below(tmp_path), Crawl(tmp_path / "crawl", ["http://a.example/"], settings, name=NAME) as crawl:
        assert crawl.run() == 1
        assert "ACL SETUSER with +zadd," in crawl.log.read_text()
        assert not server.client.keys("bigcrawl:{few*")
        node = second_process_of(crawl, "operator")
        node.settings["BIGCRAWL_REDIS_URL"] = make_user(server, "operator", NAME, "-hmget")
        assert "'hmget'" in node.frontier("status", check=False).stderr
