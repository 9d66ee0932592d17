from __future__ import annotations

import fcntl
import os
import signal
import stat
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import redis

from bigcrawl.exceptions import ConfigError, ContractError, TransientStoreError
from bigcrawl.redisdb import server_process, server_state
from bigcrawl.redisdb.embedded import SILENT_MS_MAX, EmbeddedServer
from bigcrawl.redisdb.server_process import SOCKET_PATH_BYTES_MAX
from bigcrawl.redisdb.server_state import PingAnswer, ServerRecord, ServerState, is_free, ping
from tests.support.redis_servers.embedded_users import OtherUser, in_threads, servers_in
from tests.support.running.processes import no_strays_below, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module", autouse=True)
def _no_strays(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with no_strays_below(tmp_path_factory.getbasetemp()):
        yield


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "redis"


@pytest.fixture
def server(directory: Path) -> Iterator[EmbeddedServer]:
    server = EmbeddedServer(directory)
    yield server
    server.leave()


def call(url: object, *command: object) -> object:
    with redis.Redis.from_url(str(url)) as client:
        return client.execute_command(*command)


def kill_server(server: EmbeddedServer, directory: Path) -> int:
    pid = server.process.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: is_free(directory / "server.lock"), f"the end of process {pid}")
    return pid


def incremental_aof(directory: Path) -> Path:
    (path,) = (directory / "appendonlydir").glob("*.incr.aof")
    return path


def test_server_runs_from_start_to_leave(server: EmbeddedServer, directory: Path) -> None:
    """The only user starts the server, is told its URL, and stops it by leaving."""
    url = server.start()
    assert call(url, "PING")
    assert servers_in(directory) == [server.process.pid]
    server.leave()
    assert servers_in(directory) == []
    assert server.process.pid is None


def test_server_has_jemalloc_where_the_system_has_it(server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise, and where somebody preloads something else, the server has the allocator it was built with."""
    places = (f"/usr/lib/{os.uname().machine}-linux-gnu", "/usr/lib64")
    is_there = any(Path(place, "libjemalloc.so.2").exists() for place in places)
    server.start()
    maps = Path(f"/proc/{server.process.pid}/maps").read_text()
    assert ("/libjemalloc.so.2" in maps) == is_there
    monkeypatch.setenv("LD_PRELOAD", "/no/such/library.so")
    assert server_state.server_environment()["LD_PRELOAD"] == "/no/such/library.so"
    monkeypatch.delenv("LD_PRELOAD")
    monkeypatch.setattr(Path, "exists", lambda _: False)
    assert server_state.server_environment() == dict(os.environ)


def test_start_and_leave_are_idempotent(server: EmbeddedServer) -> None:
    """A second start gives the same server; a second leave does nothing."""
    assert server.start() == server.start() == server.ensure_running()
    server.leave()
    server.leave()


def test_server_ends_without_waiting_for_its_next_tick(server: EmbeddedServer) -> None:
    """It is asked by a command; a signal alone is looked at ten times a second."""
    server.start()
    server.leave()
    assert "(user request from " in server.process.log_path.read_text()


def test_data_outlives_the_server(server: EmbeddedServer) -> None:
    """What was written before a clean stop is there after the next start."""
    call(server.start(), "SET", "key", "value")
    server.leave()
    assert call(server.start(), "GET", "key") == b"value"


def test_server_is_private_and_refuses_rather_than_forgets(server: EmbeddedServer, directory: Path) -> None:
    """No TCP port, nobody else may connect, AOF every second, no eviction, no snapshots."""
    url = server.start()
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert stat.S_IMODE((directory / "redis.sock").stat().st_mode) == 0o600
    wanted = {
        "port": "0",
        "appendonly": "yes",
        "appendfsync": "everysec",
        "save": "",
        "maxmemory-policy": "noeviction",
        "aof-load-truncated": "yes",
    }
    with redis.Redis.from_url(url, decode_responses=True) as client:
        assert {name: client.config_get(name)[name] for name in wanted} == wanted


def test_directory_that_others_could_read_is_closed(server: EmbeddedServer, directory: Path) -> None:
    """One that is there already, made by hand or by a copy, has the data and the socket in it."""
    directory.mkdir(parents=True)
    directory.chmod(0o755)
    server.start()
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700


def test_server_is_out_of_reach_of_ctrl_c(server: EmbeddedServer) -> None:
    """The server is in a session of its own and is nobody's child."""
    server.start()
    assert server.process.pid is not None
    assert os.getsid(server.process.pid) != os.getsid(0)
    with pytest.raises(ChildProcessError):
        os.waitpid(server.process.pid, os.WNOHANG)


def test_last_of_two_processes_stops_the_server(server: EmbeddedServer, directory: Path) -> None:
    """A second process joins the running server, and whoever leaves last stops it."""
    url = server.start()
    with OtherUser(directory) as other:
        assert other.call("start") == url
        assert servers_in(directory) == [server.process.pid]
        server.leave()
        assert call(url, "PING")
        other.call("leave")
    assert servers_in(directory) == []


def test_server_of_a_killed_crawl_is_reclaimed(server: EmbeddedServer, directory: Path) -> None:
    """A kill -9 of the only user leaves the server running; the next start joins that very process."""
    with OtherUser(directory) as other:
        url = other.call("start")
        call(url, "SET", "key", "value")
        left_behind = servers_in(directory)
        other.kill()
    assert server.start() == url
    assert [server.process.pid] == servers_in(directory) == left_behind
    assert call(url, "GET", "key") == b"value"
    server.leave()
    assert servers_in(directory) == []


def test_killed_user_does_not_keep_the_server(server: EmbeddedServer, directory: Path) -> None:
    """A process that died while it used the server no longer counts as a user."""
    server.start()
    with OtherUser(directory) as other:
        other.call("start")
        other.kill()
    server.leave()
    assert servers_in(directory) == []


def test_server_is_reclaimed_without_its_record(server: EmbeddedServer, directory: Path) -> None:
    """A crawl killed before it could write server.json does not hide its server from the next one."""
    with OtherUser(directory) as other:
        other.call("start")
        other.kill()
    (directory / "server.json").unlink()
    server.start()
    assert [server.process.pid] == servers_in(directory)


def test_killed_server_comes_back_once_for_all_users(server: EmbeddedServer, directory: Path) -> None:
    """After kill -9 of the server all users ask at once: one new server, same socket, same data."""
    url = server.start()
    call(url, "SET", "key", "value")
    with OtherUser(directory) as one, OtherUser(directory) as another:
        one.call("start")
        another.call("start")
        killed = kill_server(server, directory)
        one.ask("ensure_running")
        another.ask("ensure_running")
        urls = in_threads(server.ensure_running, server.ensure_running)
        assert {*urls, one.answer(), another.answer()} == {url}
        assert servers_in(directory) == [server.process.pid]
        assert server.process.pid != killed
        assert call(url, "GET", "key") == b"value"


def test_client_only_reconnects_after_a_kill(server: EmbeddedServer, directory: Path) -> None:
    """A client made before the server was killed works again without a new URL."""
    with redis.Redis.from_url(server.start()) as client:
        client.set("key", "value")
        kill_server(server, directory)
        server.ensure_running()
        assert client.get("key") == b"value"


def test_starts_and_last_leaves_may_meet(directory: Path) -> None:
    """However a start and the last leave interleave, a started user has a server until it leaves."""

    def use_it_often() -> int:
        server, answered = EmbeddedServer(directory), 0
        for _ in range(4):
            url = server.start()
            answered += bool(call(url, "PING"))
            server.leave()
        return answered

    assert in_threads(use_it_often, use_it_often, use_it_often) == [4, 4, 4]
    assert servers_in(directory) == []


def test_start_waits_until_the_data_is_loaded(server: EmbeddedServer, directory: Path) -> None:
    """A server that still reads its AOF is waited for: the first command sees all data."""
    server.start()
    server.leave()
    incremental_aof(directory).write_bytes(b"*2\r\n$4\r\nINCR\r\n$5\r\ncount\r\n" * 200_000)
    assert call(server.start(), "GET", "count") == b"200000"


def test_torn_tail_is_cut_off(server: EmbeddedServer, directory: Path) -> None:
    """An append that a crash tore is dropped, all before it is kept."""
    call(server.start(), "SET", "key", "value")
    kill_server(server, directory)
    with incremental_aof(directory).open("ab") as aof:
        aof.write(b"*3\r\n$3\r\nSET\r\n$3\r\nke")
    assert call(server.ensure_running(), "GET", "key") == b"value"


def test_damaged_aof_is_a_clear_error(server: EmbeddedServer, directory: Path) -> None:
    """A server that cannot read its data is an error with its own words and its log, and no fresh start."""
    server.start()
    server.leave()
    incremental_aof(directory).write_bytes(b"rubbish\r\n" * 10)
    with pytest.raises(ConfigError, match=r"Bad file format.*incr\.aof.*server\.log") as raised:
        server.start()
    assert "\n" not in str(raised.value)
    assert incremental_aof(directory).read_bytes() == b"rubbish\r\n" * 10
    assert servers_in(directory) == []


def test_directory_that_cannot_be_made_is_a_clear_error(tmp_path: Path) -> None:
    """A state directory that cannot be written gives one line that names it and its setting."""
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=r"/file/redis.*BIGCRAWL_STATE_DIR"):
        EmbeddedServer(tmp_path / "file" / "redis").start()


@pytest.mark.parametrize("name", ["with space", "quote'\"", "sharp#?&%20", "ünï"])
def test_directory_may_have_any_name(tmp_path: Path, name: str) -> None:
    """A path that means something to a shell, a URL or Redis' configuration is only a path."""
    server = EmbeddedServer(tmp_path / name)
    try:
        assert call(server.start(), "PING")
        assert (tmp_path / name / "redis.sock").is_socket()
    finally:
        server.leave()


def test_longest_path_that_fits_is_used(tmp_path: Path) -> None:
    """A socket path of exactly the limit lies beside the data."""
    room = SOCKET_PATH_BYTES_MAX - len(os.fsencode(tmp_path)) - len("//redis.sock")
    server = EmbeddedServer(tmp_path / ("d" * room))
    try:
        assert call(server.start(), "PING")
        assert (tmp_path / ("d" * room) / "redis.sock").is_socket()
    finally:
        server.leave()


def test_long_path_puts_the_socket_elsewhere(tmp_path: Path) -> None:
    """Where the path is too long the socket is in a private directory, the same for all users, to the end."""
    directory = tmp_path / ("d" * SOCKET_PATH_BYTES_MAX)
    server = EmbeddedServer(directory)
    url = server.start()
    try:
        record = ServerRecord.read(directory)
        assert record is not None
        place = Path(record.socket).parent
        assert place != directory
        assert stat.S_IMODE(place.stat().st_mode) == 0o700
        with OtherUser(directory) as other:
            assert other.call("start") == url
        kill_server(server, directory)
        assert server.ensure_running() == url
        assert call(url, "PING")
    finally:
        server.leave()
    assert not place.exists()


def test_left_behind_server_can_be_stopped_unseen(server: EmbeddedServer, directory: Path) -> None:
    """Before a directory is deleted its abandoned server is stopped, and one in use is not."""
    assert server.stop_if_unused(), "no directory, no server"
    with OtherUser(directory) as other:
        other.call("start")
        assert not server.stop_if_unused()
        other.kill()
    assert server.stop_if_unused()
    assert servers_in(directory) == []


def test_hung_server_is_an_error_and_not_a_second_server(server: EmbeddedServer, directory: Path) -> None:
    """A server that lives without answering is waited for, then reported; nothing else touches its data."""
    url = server.start()
    pid = server.process.pid
    assert pid is not None
    hasty = EmbeddedServer(directory, silent_ms_max=50)
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(TransientStoreError, match=rf"process {pid}.*server\.log"):
            hasty.start()
        assert servers_in(directory) == [pid]
    finally:
        os.kill(pid, signal.SIGCONT)
    hasty.process._silent_ms_max = SILENT_MS_MAX  # a busy machine takes its time to answer
    assert hasty.start() == url
    hasty.leave()


def test_leave_is_not_held_up_by_a_waiting_call(server: EmbeddedServer, directory: Path) -> None:
    """A crawl that ends while another thread waits for a hung server ends at once."""
    server.start()
    pid = server.process.pid
    assert pid is not None
    gave_up: list[TransientStoreError] = []

    def wait_for_server() -> None:
        try:
            server.ensure_running()
        except TransientStoreError as error:
            gave_up.append(error)

    with OtherUser(directory) as other:
        other.call("start")
        os.kill(pid, signal.SIGSTOP)
        waiting = threading.Thread(target=wait_for_server)
        waiting.start()
        try:
            wait_until(server._one_call.locked, "a thread that waits")
            server.leave()
            waiting.join(120)
        finally:
            os.kill(pid, signal.SIGCONT)
        assert "the crawl ends" in str(gave_up[0])
        other.call("leave")


def test_leave_ends_a_server_that_has_just_been_started(
    server: EmbeddedServer, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread waits for its first answer, and gives up. It may have no socket yet when it is to be stopped."""
    errors: list[TransientStoreError] = []
    silent = PingAnswer(ServerState.SILENT, 0)
    first = [silent]

    def start() -> None:
        try:
            server.start()
        except TransientStoreError as error:
            errors.append(error)

    def ping_early(*asked: Any) -> PingAnswer:
        return silent if threading.current_thread() is starting else first.pop() if first else ping(*asked)

    monkeypatch.setattr(server_process, "ping", ping_early)
    starting = threading.Thread(target=start)
    starting.start()
    wait_until(lambda: servers_in(directory) != [], "the server")
    server.leave()
    starting.join(120)
    assert "the crawl ends" in str(errors[0])
    assert first == []
    assert servers_in(directory) == []


def test_server_of_another_machine_is_a_clear_error(directory: Path) -> None:
    """A directory in use by another machine's server says so, and says what to set."""
    directory.mkdir()
    record = ServerRecord(str(directory), str(directory / "redis.sock"), "", "", machine="elsewhere", pid=1)
    record.write(directory)
    with (directory / "server.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(ConfigError, match=r"elsewhere.*BIGCRAWL_REDIS_URL"):
            EmbeddedServer(directory).start()


def test_record_knows_a_recycled_process_id(server: EmbeddedServer, directory: Path) -> None:
    """A later process with the recorded number is not taken for the server."""
    server.start()
    record = ServerRecord.read(directory)
    assert record is not None
    assert record.live_pid() == server.process.pid
    recycled = ServerRecord("", "", "", "", "", pid=record.pid, start_ticks=0)
    assert recycled.live_pid() is None


def test_ensure_running_is_for_users(server: EmbeddedServer) -> None:
    """A call after leave() must not bring back a server that nobody would stop."""
    with pytest.raises(ContractError):
        server.ensure_running()
    server.start()
    server.leave()
    with pytest.raises(ContractError):
        server.ensure_running()
