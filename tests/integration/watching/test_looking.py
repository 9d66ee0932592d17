"""An operator looks at hosts, one host, one site, nodes and failures, of a live crawl and of the stopped one."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.crawling.crawls import Crawl, SimulatedWeb
from tests.support.running.processes import wait_until

if TYPE_CHECKING:
    from pathlib import Path


def reasons(crawl: Crawl) -> set[str]:
    return {each["reason"] for each in crawl.asked("errors")["errors"]}


@pytest.mark.long("each command by itself: tests/unit/commands/looking")
def test_operator_looks_at_hosts_nodes_and_errors(tmp_path: Path) -> None:
    settings = {"BIGCRAWL_PARTITIONS": 4, "BIGCRAWL_HOST_DELAY": 2, "BIGCRAWL_BACKOFF": 600}
    with SimulatedWeb(tmp_path / "web", hosts=5, pages=2_000) as web:
        port = web.seeds[0].rsplit(":", 1)[1].strip("/")
        seeds = [*web.seeds, "http://127.88.0.1:9/nobody/listens", f"{web.seeds[0]}no/such/page"]
        with Crawl(tmp_path / "crawl", seeds, settings) as crawl:
            crawl.start()
            wait_until(lambda: len(web.exchanges()) > 10, "pages are fetched")
            wait_until(lambda: reasons(crawl) >= {"status:404", "robots.txt error:refused"}, "failures are told")

            hosts = {row["host"]: row for row in crawl.asked("hosts")["hosts"]}
            assert "127.88.0.1" in hosts
            assert len(hosts) > 1
            assert (hosts["127.88.0.1"]["state"], hosts["127.88.0.1"]["failures"]) == ("snoozed", 1)
            [snoozed] = crawl.asked("hosts", "--state", "snoozed")["hosts"]
            assert snoozed["host"] == "127.88.0.1"
            crawl.frontier("pause")  # so that queues stand still, once the node has heard of it
            wait_until(lambda: [each["state"] for each in crawl.asked("nodes")["nodes"]] == ["paused"], "it pauses")
            most = crawl.asked("hosts", "--sort", "waiting", "--limit", "1")["hosts"][0]
            host = crawl.asked("host", most["host"])
            assert host["host"] == host["pld"] == most["host"]
            assert host["next_urls"]
            assert all(f"//{most['host']}:{port}/" in url for url in host["next_urls"])
            assert [robots["authority"] for robots in host["robots"]] == [f"http://{most['host']}:{port}"]
            assert host["addresses"] == [most["host"]]
            shown = crawl.frontier("host", host["next_urls"][0]).stdout
            # What was on its way to the queue when the node paused may have come before it since.
            assert any(f"\n  next       {url}" in shown for url in crawl.asked("host", most["host"])["next_urls"])
            assert "ends its rest" in crawl.frontier("host", "127.88.0.1").stdout
            assert "Redis has nothing of it" in crawl.frontier("host", "nosuch.example").stdout
            said = crawl.frontier("pause", "nod1").stdout  # a misspelled node
            assert said == "paused: nod1, as a host; no node of this name runs\n"

            site = crawl.asked("pld", "127.88.0.1")
            assert [row["host"] for row in site["hosts"]] == ["127.88.0.1"]
            assert [row["reason"] for row in site["errors"]] == ["robots.txt error:refused"]
            assert "example" not in crawl.frontier("pld", most["host"]).stdout

            missing = crawl.asked("errors", "--reason", "404")["errors"]
            assert [each["reason"] for each in missing] == ["status:404"]
            assert all(row["example"].startswith(f"http://{row['pld']}:{port}/") for row in missing[0]["worst"])

            [node] = crawl.asked("nodes")["nodes"]
            assert (node["state"], node["partitions"], node["trouble"]) == ("paused", 4, "")
            assert node["pages"] > 0

            crawl.terminate()
            assert crawl.wait(300) == 0
            assert crawl.asked("nodes") == {"nodes": []}
            assert crawl.frontier("nodes").stdout == "no node runs\n"
            assert most["host"] in {row["host"] for row in crawl.asked("hosts")["hosts"]}
            # Answers that were under way when it was paused may have been told since.
            [ended] = crawl.asked("errors", "--reason", "404")["errors"]
            assert counts_by_pld(ended) >= counts_by_pld(missing[0])


def counts_by_pld(found: dict[str, Any]) -> Counter[str]:
    return Counter({row["pld"]: row["fetches"] for row in found["worst"]})
