from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import redis

from bigcrawl.redisdb.keys import PartitionKeys
from bigcrawl.scheduler.records.member import pack_member
from tests.support.faults.redis_log import read_history
from tests.support.redis_servers.aof import cut_aof_to, cut_since
from tests.support.redis_servers.redis_server import PrivateRedis, binary_under_test
from tests.support.running.processes import no_strays_below, wait_until
from tests.unit.scheduler.world import queued

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.redis_servers.redis_cluster import PrivateCluster

STARTS_A_SERVER = """
import sys
from tests.support.redis_servers.redis_server import PrivateRedis
server = PrivateRedis()
server.start()
print(server.pid, server.directory, flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def own_server() -> Iterator[PrivateRedis]:
    with PrivateRedis() as server:
        yield server


def is_alive(pid: int) -> bool:
    try:
        return not Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].startswith(b" Z")
    except FileNotFoundError:
        return False


def start_daemon(directory: Path) -> int:
    """Start a server as the product does, to outlive whoever started it."""
    options = ("--port", "0", "--daemonize", "yes", "--pidfile", "pid", "--unixsocket", "sock")
    command = [str(binary_under_test()), *options, "--dir", str(directory)]
    subprocess.run(command, cwd=directory, check=True, stdout=subprocess.DEVNULL)
    pid_file = directory / "pid"
    wait_until(lambda: pid_file.exists() and bool(pid_file.read_text()), "a pid file")
    return int(pid_file.read_text())


def server_second(server: PrivateRedis) -> int:
    return server.client.time()[0]


def test_kill_and_restart_keep_data_and_url(own_server: PrivateRedis) -> None:
    """A killed server comes back as another process, on the same URL, with what it was told."""
    own_server.client.set("kept", "value")
    pid, url = own_server.pid, own_server.url
    own_server.kill()
    own_server.start()
    assert own_server.pid != pid
    assert own_server.url == url
    assert own_server.client.get("kept") == b"value"


def test_cut_forgets_exactly_the_later_seconds(own_server: PrivateRedis) -> None:
    """Writes up to the second of the cut stay, all later ones go."""
    client = own_server.client

    def wrote_within_a_second() -> bool:
        client.delete("seconds")
        second = server_second(own_server)
        client.rpush("seconds", second)
        return server_second(own_server) == second

    wait_until(wrote_within_a_second, "a write in the second that it names")
    [first] = map(int, client.lrange("seconds", 0, -1))

    def wrote_in_second(second: int) -> bool:
        now = server_second(own_server)
        client.rpush("seconds", now)
        return now >= second

    wait_until(lambda: wrote_in_second(first + 2), "the server's clock two seconds on")
    written = [int(second) for second in client.lrange("seconds", 0, -1)]
    assert own_server.cut_aof_to(first) > 0
    # The command that follows TIME may fall into the next second, never into an earlier one.
    kept = [int(second) for second in client.lrange("seconds", 0, -1)]
    assert kept
    assert set(kept) == {first}
    assert len(kept) >= written.count(first) - 1
    client.rpush("seconds", "after")
    assert own_server.cut_aof_to(server_second(own_server)) == 0
    assert client.lindex("seconds", -1) == b"after"


def test_cut_walks_commands_not_lines(tmp_path: Path) -> None:
    """A value that looks like an annotation is data; files behind the cut are emptied."""
    (tmp_path / "a.manifest").write_text(
        "file a.1.base.rdb seq 1 type b\nfile a.1.incr.aof seq 1 type i\nfile a.2.incr.aof seq 2 type i\n"
    )
    early = b"#TS:100\r\n*2\r\n$3\r\nGET\r\n$12\r\n\r\n#TS:999\r\n\x00\r\n"
    late = b"#TS:102\r\n*1\r\n$4\r\nPING\r\n"
    (tmp_path / "a.1.incr.aof").write_bytes(early + late)
    (tmp_path / "a.2.incr.aof").write_bytes(late)
    assert cut_aof_to(tmp_path, 101) == 2 * len(late)
    assert (tmp_path / "a.1.incr.aof").read_bytes() == early
    assert (tmp_path / "a.2.incr.aof").read_bytes() == b""


def test_a_cut_within_a_second_ends_behind_a_transaction(tmp_path: Path) -> None:
    """So much of the second stays as its fraction asks for, and no part of a transaction; what came later goes."""
    (tmp_path / "a.manifest").write_text("file a.1.base.rdb seq 1 type b\nfile a.1.incr.aof seq 1 type i\n")
    early, ping = b"#TS:100\r\n*1\r\n$4\r\nPING\r\n", b"*1\r\n$4\r\nPING\r\n"
    second = b"#TS:101\r\n" + ping + b"*1\r\n$5\r\nMULTI\r\n" + 4 * ping + b"*1\r\n$4\r\nEXEC\r\n"
    late = b"#TS:102\r\n" + ping
    for since_s, kept in ((101.9, early + second[:23]), (101.0, early), (102.0, early + second), (100.0, b"")):
        (tmp_path / "a.1.incr.aof").write_bytes(early + second + late)
        assert cut_since(tmp_path, since_s) == len(early + second + late) - len(kept)
        assert (tmp_path / "a.1.incr.aof").read_bytes() == kept


def test_ends_are_read_from_the_commands(own_server: PrivateRedis) -> None:
    """What was taken and is so no longer has ended, unless the same script put it back into a queue."""
    keys, other = PartitionKeys("crawl", 1), PartitionKeys("crawl", 2)
    [url] = queued("http://a.example/page")
    record = b"a.example\n1\n1\n" + pack_member(7, url, 0)
    client = own_server.client
    for partition in (keys, other):
        client.hset(partition.taken, "7", record)
    with client.pipeline() as script:
        script.hdel(keys.taken, "7")
        script.zadd(keys.back + "a.example", {pack_member(7, url, 1): 1})
        script.hdel(other.taken, "7")
        script.execute()
    own_server.kill()
    assert read_history(own_server.commands())[:2] == (Counter({"http://a.example/page": 1}), Counter())


def test_what_another_node_has_claimed_is_read_from_the_commands(own_server: PrivateRedis) -> None:
    """URLs that were in process then are lost to the last owner. One that claims again has them until it dies."""
    keys = PartitionKeys("claimed", 1)
    [url] = queued("http://a.example/page")
    record = b"a.example\n1\n1\n" + pack_member(7, url, 0)
    own_server.start()
    client = own_server.client
    for node in ("a", "b", "b", "a"):
        with client.pipeline() as script:
            script.delete(keys.busy, keys.taken)
            script.hset(keys.owner, mapping={"node": node, "epoch": 1})
            script.execute()
        client.hset(keys.taken, "7", record)
    history = read_history(own_server.commands())
    assert history.lost == {"http://a.example/page": 2}
    [(partition, *taken)] = history.taken
    assert taken == [b"a", "http://a.example/page"]
    assert history.claims[partition] == [b"a", b"b", b"b", b"a"]


@pytest.mark.parametrize("settles", [True, False])
def test_owner_that_claims_again_has_its_urls_until_it_dies(own_server: PrivateRedis, settles: bool) -> None:
    """They are lost if it did not say what became of them before another node claims."""
    keys = PartitionKeys("claimed", 2 + settles)
    [url] = queued("http://a.example/other")
    client = own_server.client
    for node in ("a", "a", "b"):
        with client.pipeline() as script:
            script.delete(keys.busy, keys.taken)
            script.hset(keys.owner, mapping={"node": node, "epoch": 1})
            script.execute()
        if client.hincrby(keys.owner, "claims", 1) == 1:
            client.hset(keys.taken, "7", b"a.example\n1\n1\n" + pack_member(7, url, 0))
        elif settles:
            client.hset(keys.owner, "generation", 2)
    assert read_history(own_server.commands()).lost["http://a.example/other"] == (not settles)


def test_rewritten_base_is_not_cut(tmp_path: Path) -> None:
    """A base that may hold later writes is refused rather than cut wrongly."""
    (tmp_path / "a.manifest").write_text("file a.2.base.rdb seq 2 type b\n")
    with pytest.raises(ValueError, match="rewritten base"):
        cut_aof_to(tmp_path, 0)


def test_server_dies_with_the_run_that_started_it() -> None:
    """A test run that is killed leaves no server behind."""
    with subprocess.Popen(
        [sys.executable, "-c", STARTS_A_SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout is not None
        pid, directory = run.stdout.readline().split()
        assert is_alive(int(pid))
        run.kill()
    wait_until(lambda: not is_alive(int(pid)), f"the end of process {pid}")
    subprocess.run(["rm", "-r", directory], check=True)


def test_strays_are_killed_at_the_end(tmp_path: Path) -> None:
    """A server that outlived its parent below the watched directory is killed with the watch; no other is."""
    (tmp_path / "watched").mkdir()
    (tmp_path / "spared").mkdir()
    with no_strays_below(tmp_path / "watched"):
        pids = [start_daemon(tmp_path / name) for name in ("watched", "spared")]
    wait_until(lambda: not is_alive(pids[0]), f"the end of process {pids[0]}")
    assert is_alive(pids[1])
    os.kill(pids[1], signal.SIGKILL)


def test_cluster_spreads_slots_over_three_masters(redis_cluster: PrivateCluster) -> None:
    """Three masters share all slots; a client given one address reaches keys on each."""
    before = sum(master.client.dbsize() for master in redis_cluster.masters)
    with redis_cluster.client() as client:
        assert all(client.set(f"key{number}", number) for number in range(30))
        assert client.mget_nonatomic([f"key{number}" for number in range(30)])[29] == b"29"
    holding = [master.client.dbsize() for master in redis_cluster.masters]
    assert len(holding) == 3
    assert all(holding)
    assert sum(holding) == before + 30


def test_crawl_names_are_unique(crawl_name: str, redis_url: str, redis_server: PrivateRedis) -> None:
    """The shared server is reached by its URL, and each test has a prefix of its own there."""
    with redis.Redis.from_url(redis_url) as client:
        assert client.info("server")["process_id"] == redis_server.pid
        assert not client.exists(crawl_name)
