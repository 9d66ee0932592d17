"""The files of ops/ by the tools that they are for, and what they describe at work: an image, nodes, Redis, a service.

The image is built and run without Docker (tests/support/servers/image.py). Debian's systemd and redis-server, the extra
`ops`.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import redis
import yaml

from tests.support.crawling.crawls import SimulatedWeb
from tests.support.crawling.verdicts import FETCHED_AGAIN
from tests.support.running.ports import bind_lasting
from tests.support.running.processes import spawn, wait_until
from tests.support.servers import ops_files
from tests.support.servers.image import Container, Image
from tests.support.servers.ops_files import OPS
from tests.support.servers.s3_server import new_bucket, s3_server
from tests.unit.page_store.test_uploads import in_store

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.system

TOOLS = Path(sys.executable).parent
CONTAINER_S_MAX = 600  # until one that was started answers, on a machine that starts others besides
PASSWORD = 'p"ss \\w0rd/#%'  # noqa: S105 - of a Redis that lives as long as a test


def refusal(*command: str | Path) -> str:
    """What a validator has to say; "" if it accepts the file."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr if done.returncode or "systemd" in str(command[0]) else ""


def changed(path: Path, old: str, new: str, directory: Path) -> Path:
    """A copy of a file with one mistake."""
    text = path.read_text("utf-8")
    assert old in text
    copy = directory / path.name
    copy.write_text(text.replace(old, new, 1))
    return copy


def test_hadolint_finds_no_fault_with_the_dockerfile(tmp_path: Path) -> None:
    """Its rules, and those of shellcheck for RUN."""
    assert refusal(TOOLS / "hadolint", ops_files.DOCKERFILE) == ""
    assert "DL4000" in refusal(
        TOOLS / "hadolint", changed(ops_files.DOCKERFILE, "# A node", "MAINTAINER a\n#", tmp_path)
    )


def compose_refusal(text: str) -> str:
    import compose_spec

    try:
        # The library reads YAML as well, but not its merge keys.
        compose_spec.PyCompose.from_json(json.dumps(yaml.safe_load(text)))
    except ValueError as error:
        return str(error)
    return ""


def test_the_compose_file_is_one_by_the_specification() -> None:
    """Every key and value."""
    assert compose_refusal(ops_files.COMPOSE.read_text("utf-8")) == ""


@pytest.mark.parametrize("mistake", ["stop_grace_period:stop_grace_time", "on-failure:on-error", "60s:60 seconds"])
def test_a_mistake_in_the_compose_file_is_found(mistake: str) -> None:
    """The check above is one."""
    right, wrong = mistake.split(":")
    assert compose_refusal(ops_files.COMPOSE.read_text("utf-8").replace(right, wrong))


@pytest.mark.parametrize("version", ["1.29", "1.37"])
@pytest.mark.parametrize("path", ops_files.MANIFESTS, ids=lambda path: path.name)
def test_manifests_fit_the_schemas_of_kubernetes(path: Path, version: str) -> None:
    """Of an old and of a new release, without a field that they do not know."""
    assert refusal(TOOLS / "kubernetes-validate", "--strict", "-k", version, path) == ""


def test_a_mistake_in_a_manifest_is_found(tmp_path: Path) -> None:
    """The check above is one."""
    wrong = changed(OPS / "kubernetes" / "nodes.yaml", "maxUnavailable", "maxUnavailabe", tmp_path)
    assert "maxUnavailabe" in refusal(TOOLS / "kubernetes-validate", "--strict", wrong)


def unit_here(directory: Path, old: str = "", new: str = "") -> Path:
    """An instance of the unit, with the `scrapy` of this environment, which must exist."""
    text = ops_files.UNIT.read_text("utf-8").replace("/opt/bigcrawl/venv/bin", str(TOOLS)).replace(old, new)
    unit = directory / "bigcrawl@1.service"
    unit.write_text(text)
    return unit


@pytest.mark.parametrize("mistake", ["", "RestartSec=:RestartSecs=", "60s:60 lightyears", "scrapy crawl:scrapi crawl"])
def test_systemd_accepts_the_unit(mistake: str, tmp_path: Path) -> None:
    """It warns of keys and values that it does not know, and of programs that are not there."""
    old, _, new = mistake.partition(":")
    said = refusal("systemd-analyze", "verify", "--man=no", unit_here(tmp_path, old, new))
    assert bool("bigcrawl@1.service" in said) == bool(mistake), said


@contextmanager
def redis_of_ops(directory: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """The Redis that compose and Kubernetes start, by their script, on loopback."""
    data = directory / "data"
    data.mkdir(exist_ok=True)
    secret = directory / "redis_password"
    secret.write_text(PASSWORD + "\n")
    secret.chmod(0o644)
    script, configuration = OPS / "redis" / "start.sh", OPS / "redis" / "redis.conf"
    process = spawn(
        ["/bin/sh", script, secret, configuration, data, "--bind", "127.0.0.1", "--port", str(port)],
        env={**os.environ, "TMPDIR": str(directory)},
        stdout=subprocess.DEVNULL,
    )
    try:
        with redis.Redis(port=port, password=PASSWORD) as client:
            wait_until(lambda: answers(client), "Redis answers")
        yield process
    finally:
        process.kill()
        process.wait()


def answers(client: redis.Redis) -> bool:
    try:
        return bool(client.ping())
    except redis.ConnectionError:
        return False


def free_port() -> int:
    with socket.socket() as free:
        return bind_lasting(free)


def test_redis_starts_with_the_password_of_its_file(tmp_path: Path) -> None:
    """Whoever has none is refused, the list of processes does not show it, and what is written outlives a kill."""
    port = free_port()
    with redis_of_ops(tmp_path, port) as process:
        with redis.Redis(port=port) as stranger, pytest.raises(redis.AuthenticationError):
            stranger.ping()
        assert PASSWORD.encode() not in Path(f"/proc/{process.pid}/cmdline").read_bytes()
        with redis.Redis(port=port, password=PASSWORD) as client:
            assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
            client.set("a", "b")
    with redis_of_ops(tmp_path, port), redis.Redis(port=port, password=PASSWORD) as client:
        assert client.get("a") == b"b"


def test_redis_does_not_start_without_a_password(tmp_path: Path) -> None:
    """An empty secret would make it open to all."""
    (tmp_path / "empty").write_text("\n")
    script, configuration = OPS / "redis" / "start.sh", OPS / "redis" / "redis.conf"
    words: list[str | Path] = ["sh", script, tmp_path / "empty", configuration, tmp_path]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "is empty" in done.stderr


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    """The image of ops/docker/Dockerfile: every RUN and COPY is done, packages are installed."""
    if os.geteuid() != 0:
        pytest.fail("overlays need root")
    built = Image.build(tmp_path_factory.mktemp("image"))
    try:
        yield built
    finally:
        built.close()


class Nodes:
    """Nodes as containers, with a web and a Redis of this machine."""

    def __init__(self, image: Image, web: SimulatedWeb, redis_port: int, directory: Path) -> None:
        self._image, self._directory = image, directory
        (directory / "seeds.txt").write_text("\n".join(web.seeds) + "\n")
        self._here = {
            "BIGCRAWL_REDIS_URL": f"redis://127.0.0.1:{redis_port}/0",
            "BIGCRAWL_ALLOW_PRIVATE_ADDRESSES": "1",
            "BIGCRAWL_SERVER_DELAY": "0",
            "BIGCRAWL_HOST_DELAY": "0.25",
            "BIGCRAWL_PARTITIONS": "16",
        }
        self.ports: dict[str, int] = {}
        self._starts = 0

    def described(self, name: str) -> tuple[list[str], dict[str, str]]:
        """The command of a node, and its environment, by the files."""
        command: list[str] = ops_files.compose()["services"][name]["command"]
        return command, ops_files.compose_environment(name)

    def volume(self, name: str) -> Path:
        """What is mounted: the compose file's volume, which a new one is like what it is mounted on."""
        volume = self._directory / "volume"
        if not volume.exists():
            volume.mkdir()
            made = self._image.path("/var/lib/bigcrawl")
            shutil.copystat(made, volume)
            os.chown(volume, made.stat().st_uid, made.stat().st_gid)
        return volume

    def start(self, name: str, *instead: str, **changes: str) -> Container:
        """Start a node, or another command in its place; `changes` are settings."""
        command, environment = self.described(name)
        self._starts += 1
        if not instead:
            self.ports[name] = free_port()
        mounts = {
            "/var/lib/bigcrawl": self.volume(name),
            command[-1].removeprefix("seeds="): self._directory / "seeds.txt",
            environment["BIGCRAWL_REDIS_PASSWORD_FILE"]: self._directory / "redis_password",
        }
        log = self._directory / f"{self._starts}-{name}.log"
        given = {**environment, **self._here, **changes, "BIGCRAWL_METRICS_PORT": str(self.ports[name])}
        return self._image.start(instead or command, given, mounts, log)

    def is_listening(self, name: str) -> bool:
        """Whether it is worth asking whether the container is healthy, which starts a Python there."""
        try:
            socket.create_connection(("127.0.0.1", self.ports[name])).close()
        except ConnectionRefusedError:
            return False
        return True

    def is_healthy(self, name: str, container: Container) -> bool:
        """Whether the image's HEALTHCHECK says so. Here containers share a network, so each has its own port."""
        [check] = ops_files.argument_lists("HEALTHCHECK")
        return container.run([word.replace("9410", str(self.ports[name])) for word in check]) == 0

    def status(self) -> dict[str, Any]:
        """What `scrapy frontier status` says in a container; empty if the crawl does not exist yet."""
        with self.start(next(iter(self.ports)), "scrapy", "frontier", "status", "--json") as container:
            status = container.wait(300)
            found: dict[str, Any] = json.loads(container.log.read_text()) if status == 0 else {}
            return found


def test_three_nodes_of_the_image_crawl_a_web(image: Image, tmp_path: Path) -> None:
    """Healthy while loops answer, with and without Redis; SIGTERM and kill -9 lose nothing; status 0 at the end."""
    port, names = free_port(), ("node1", "node2", "node3")
    with ExitStack() as stack:
        web = stack.enter_context(SimulatedWeb(tmp_path / "web", hosts=12, pages=30))
        server = stack.enter_context(ExitStack())
        server.enter_context(redis_of_ops(tmp_path, port))
        nodes = Nodes(image, web, port, tmp_path)

        def start(name: str) -> Container:
            return stack.enter_context(nodes.start(name, BIGCRAWL_CLOSE="forever"))

        def wait_until_healthy(name: str) -> None:
            wait_until(lambda: nodes.is_listening(name), f"{name} listens", CONTAINER_S_MAX)
            wait_until(lambda: nodes.is_healthy(name, running[name]), f"{name} is healthy", CONTAINER_S_MAX)

        running = {name: start(name) for name in names}
        for name in names:
            wait_until_healthy(name)
        wait_until(
            lambda: nodes.status().get("partitions", {}).get("owned") == 16, "all partitions are owned", CONTAINER_S_MAX
        )
        running["node1"].send_to_node(signal.SIGSTOP)
        assert not nodes.is_healthy("node1", running["node1"]), "its loop does not answer"
        running["node1"].send_to_node(signal.SIGCONT)
        wait_until_healthy("node1")

        running["node3"].send_to_node(signal.SIGKILL)
        assert running["node3"].wait(600) == 128 + signal.SIGKILL, "so Docker starts it again"
        running["node3"] = start("node3")
        wait_until_healthy("node3")
        server.close()
        for name in names:
            wait_until_healthy(name)  # a node without Redis is alive
        stack.enter_context(redis_of_ops(tmp_path, port))
        for name in names:
            running[name].send(signal.SIGTERM)
        for name in names:
            assert running[name].wait(600) == 0, running[name].log.read_text()

        running = {name: stack.enter_context(nodes.start(name)) for name in names}
        for name in names:
            assert running[name].wait(600) == 0, running[name].log.read_text()
        assert nodes.status()["finished"]
        report = web.report(delay_ms=250)
        assert report.kinds <= FETCHED_AGAIN, str(report)
        volume = nodes.volume("node1")
        assert list((volume / "warc").glob("*.warc.gz"))
        directories = [path for path in volume.rglob("*") if path.is_dir() and path.name != "warc"]
        assert all(path.stat().st_mode & 0o077 == 0 for path in directories)


class Pods(Nodes):
    """The nodes of the Kubernetes manifests: each has a volume of its own, and all share a store."""

    def described(self, name: str) -> tuple[list[str], dict[str, str]]:
        """The same, by the manifests; on loopback, and with the store of the tests."""
        [container] = ops_files.manifest("StatefulSet", "crawl")["spec"]["template"]["spec"]["containers"]
        store = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
        return container["args"], {
            **ops_files.pod_environment(name),
            **store,
            "BIGCRAWL_STORE_URL": os.environ["TEST_BUCKET"],
            "BIGCRAWL_WARC_STORE_URL": f"{os.environ['TEST_BUCKET']}/pages",
            "BIGCRAWL_METRICS_ADDRESS": "127.0.0.1",
        }

    def volume(self, name: str) -> Path:
        """A volume as the kubelet gives it to a pod: root's, and the group's of `fsGroup`."""
        volume = self._directory / f"volume-{name}"
        if not volume.exists():
            volume.mkdir()
            os.chown(
                volume,
                0,
                ops_files.manifest("StatefulSet", "crawl")["spec"]["template"]["spec"]["securityContext"]["fsGroup"],
            )
            volume.chmod(0o2775)
        return volume


def test_pods_with_disks_of_their_own_are_updated_one_by_one(
    image: Image, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each ends with status 0 and comes back under its name; the crawl is whole at the end."""
    port, names = free_port(), ("crawl-0", "crawl-1", "crawl-2")
    with ExitStack() as stack:
        monkeypatch.setenv("TEST_BUCKET", new_bucket(stack.enter_context(s3_server()), monkeypatch))
        web = stack.enter_context(SimulatedWeb(tmp_path / "web", hosts=12, pages=30))
        stack.enter_context(redis_of_ops(tmp_path, port))
        pods = Pods(image, web, port, tmp_path)

        def start(name: str) -> None:
            running[name] = stack.enter_context(pods.start(name))

        def wait_until_ready(name: str) -> None:
            wait_until(lambda: pods.is_listening(name), f"{name} listens", CONTAINER_S_MAX)
            wait_until(lambda: pods.is_healthy(name, running[name]), f"{name} is ready", CONTAINER_S_MAX)

        running: dict[str, Container] = {}
        for name in names:
            start(name)
        for name in names:
            wait_until_ready(name)
        for name in reversed(names):
            running[name].send(signal.SIGTERM)
            assert running[name].wait(600) == 0, running[name].log.read_text()
            start(name)
            wait_until_ready(name)

        for name in names:
            running[name].send(signal.SIGTERM)
            assert running[name].wait(600) == 0, running[name].log.read_text()
        running = {name: stack.enter_context(pods.start(name, BIGCRAWL_CLOSE="until-empty")) for name in names}
        for name in names:
            assert running[name].wait(600) == 0, running[name].log.read_text()
        assert web.report(delay_ms=250).ok, str(web.report(delay_ms=250))
        # What a pod had no time to move waits on its volume.
        stored = list(in_store(f"{os.environ['TEST_BUCKET']}/pages"))
        assert [file for file in stored if file.endswith(".warc.gz")]
        for name in names:
            waiting = [path.name for path in (pods.volume(name) / "warc").glob("*.warc.gz")]
            assert [file for file in (*stored, *waiting) if f"-{name}" in file and file.endswith(".warc.gz")], name


def test_a_signal_without_a_handler_ends_a_node_in_its_container(image: Image, tmp_path: Path) -> None:
    """The watchdog's timer ends a node whose C code holds the interpreter. As process 1 the node would live on."""
    code = "import signal\nsignal.setitimer(signal.ITIMER_VIRTUAL, 0.1)\nsum(range(10**8))"
    with image.start(["python", "-c", code], {}, {}, tmp_path / "log") as container:
        assert container.wait(600) == 128 + signal.SIGVTALRM


def test_the_command_of_the_unit_ends_with_the_statuses_that_it_expects(tmp_path: Path) -> None:
    """0 after SIGTERM, so that it is not started again; 1 for a wrong setting and 2 for a wrong command, likewise."""
    [line] = ops_files.unit()["ExecStart"]
    port = free_port()
    with SimulatedWeb(tmp_path / "web", hosts=12, pages=60) as web, redis_of_ops(tmp_path, port):
        (tmp_path / "seeds.txt").write_text("\n".join(web.seeds) + "\n")
        command = line.replace("/opt/bigcrawl/venv/bin", str(TOOLS)).replace("/etc/bigcrawl", str(tmp_path)).split()
        project = tmp_path / "project"
        shutil.copytree(OPS / "project", project)
        environment = {
            "PATH": os.defpath,
            **ops_files.unit_environment("1", credentials=str(tmp_path)),
            "BIGCRAWL_STATE_DIR": str(tmp_path / "state"),
            "BIGCRAWL_WARC_DIR": str(tmp_path / "warc"),
            "BIGCRAWL_REDIS_URL": f"redis://127.0.0.1:{port}/0",
            "BIGCRAWL_METRICS_PORT": "0",
            "BIGCRAWL_ALLOW_PRIVATE_ADDRESSES": "1",
            "BIGCRAWL_HOST_DELAY": "1",
        }
        log = tmp_path / "log"

        def started(*more: str, **changes: str) -> subprocess.Popen[bytes]:
            with log.open("wb") as output:
                return spawn(
                    [*command, *more], cwd=project, env={**environment, **changes}, stdout=output, stderr=output
                )

        node = started()
        wait_until(lambda: any(exchange.status == 200 for exchange in web.exchanges()), "a page was fetched")
        node.terminate()
        assert node.wait(600) == 0, log.read_text()
        assert started(BIGCRAWL_HOST_DELAYS="1").wait(600) == 1
        assert "did you mean BIGCRAWL_HOST_DELAY?" in log.read_text()
        assert started("--wrong").wait(600) == 2
