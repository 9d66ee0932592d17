"""The files of ops/ against the code: the settings they name exist, and their times and rules fit what a node does."""

from __future__ import annotations

import os
import re
import runpy
from pathlib import Path
from typing import Any

import pytest
from scrapy.settings import Settings

from bigcrawl.commands.actions import ACTIONS
from bigcrawl.config import read_config
from bigcrawl.default_settings import BY_NAME
from bigcrawl.exceptions import ConfigError
from bigcrawl.redisdb.server_needs import faults_of
from bigcrawl.scheduler.node.watchdog import STOOD_STILL
from tests.support.servers import ops_files
from tests.support.servers.ops_files import OPS, PROJECT, compose, manifest, manifests, seconds, unit

FILES = sorted(path for path in OPS.rglob("*") if path.is_file() and path.suffix not in (".json", ".pyc"))
# Each node that is described, with its environment.
NODES = {
    **{name: ops_files.compose_environment(name) for name in ("node1", "node2", "node3")},
    "systemd": ops_files.unit_environment("1"),
    "kubernetes": ops_files.pod_environment("crawl-0"),
}
PASSWORD_FILE = "BIGCRAWL_REDIS_PASSWORD_FILE"  # noqa: S105 - a setting's name
# What docs/containers.md has the reader make.
MADE_BY_HAND = {("Secret", "crawl-redis"), ("Secret", "crawl-store")}


def test_the_page_names_files_commands_and_objects_that_are_there() -> None:
    """What docs/containers.md has the reader copy, run and make."""
    page = (PROJECT / "docs" / "containers.md").read_text("utf-8")
    for name in re.findall(r"\bops/[\w./@-]+\w", page):
        assert (PROJECT / name).exists(), name
    assert set(re.findall(r"scrapy frontier (\w+)", page)) <= ACTIONS.keys()
    assert set(re.findall(r"create secret generic ([\w-]+)", page)) == {name for _, name in MADE_BY_HAND}
    for name in re.findall(r"\bConfigMap `([\w-]+)", page):
        assert manifest("ConfigMap", name)
    for name in re.findall(r"\bstatefulset\s+([\w-]+)", page):
        assert manifest("StatefulSet", name)
    assert set(re.findall(r"\bnode\d\b", page)) <= compose()["services"].keys()


def names_in(path: Path) -> set[str]:
    return set(re.findall(r"\bBIGCRAWL_[A-Z_]+[A-Z]\b", path.read_text("utf-8")))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(OPS).as_posix())
def test_a_setting_that_is_named_exists(path: Path) -> None:
    """In comments too."""
    assert names_in(path) - BY_NAME.keys() == set()


def settings_of(environment: dict[str, str], tmp_path: Path, patches: pytest.MonkeyPatch) -> Settings:
    """The settings that the project of ops/project has in an environment; the password is there."""
    for name in [name for name in os.environ if name.startswith("BIGCRAWL_")]:
        patches.delenv(name)
    secret = tmp_path / "password"
    secret.write_text("s3cret")
    for name, value in {**environment, PASSWORD_FILE: str(secret)}.items():
        patches.setenv(name, value)
    found = runpy.run_path(str(OPS / "project" / "crawl" / "settings.py"))
    return Settings({name: value for name, value in found.items() if name.isupper()})


@pytest.mark.parametrize("node", NODES)
def test_settings_of_a_node_are_accepted(node: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the node itself reads them, with the password that it finds in a file."""
    config = read_config(settings_of(NODES[node], tmp_path, monkeypatch))
    assert config.crawl.redis_url is not None
    assert ":s3cret@" in config.crawl.redis_url
    assert config.metrics.is_on
    assert {config.crawl.state_dir, config.crawl.warc_dir} == {
        Path("/var/lib/bigcrawl/state"),
        Path("/var/lib/bigcrawl/warc"),
    }


def test_a_typing_error_in_the_environment_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The project hands all that begins with BIGCRAWL_ to bigcrawl, which knows its names."""
    environment = {**NODES["node1"], "BIGCRAWL_HOST_DELAYS": "5"}
    with pytest.raises(ConfigError, match="did you mean BIGCRAWL_HOST_DELAY"):
        read_config(settings_of(environment, tmp_path, monkeypatch))


def test_each_node_has_a_lasting_name_of_its_own() -> None:
    """By it a node that is started again gets its partitions back."""
    named = [environment["BIGCRAWL_NODE"] for environment in NODES.values()]
    assert sorted(named) == ["crawl-0", "machine-1", "node1", "node2", "node3"]
    services = {name for name in compose()["services"] if name != "redis"}
    assert services == {"node1", "node2", "node3"}


def test_nodes_that_share_no_disk_have_a_store() -> None:
    """Those of Kubernetes have a disk each; those of one machine have one together, and need none."""
    assert NODES["kubernetes"]["BIGCRAWL_STORE_URL"].startswith("s3://")
    assert NODES["kubernetes"]["BIGCRAWL_WARC_STORE_URL"].startswith("s3://")
    assert NODES["kubernetes"]["BIGCRAWL_WARC_STORE_URL"] != NODES["kubernetes"]["BIGCRAWL_STORE_URL"]
    volumes = {str(compose()["services"][name]["volumes"][0]) for name in ("node1", "node2", "node3")}
    assert volumes == {"crawl:/var/lib/bigcrawl"}
    assert "BIGCRAWL_STORE_URL" not in NODES["node1"]


def pod_of(name: str) -> dict[str, Any]:
    found: dict[str, Any] = manifest("StatefulSet", name)["spec"]["template"]["spec"]
    return found


def test_a_node_has_the_time_to_stop() -> None:
    """Running fetches have their grace, and half a minute is left for the rest: links, files, partitions, Redis."""
    grace_s = float(str(BY_NAME["BIGCRAWL_STOP_GRACE"].default)) + 30
    services = compose()["services"]
    assert all(seconds(services[name]["stop_grace_period"]) >= grace_s for name in services)
    assert seconds(unit()["TimeoutStopSec"][-1]) >= grace_s
    assert pod_of("crawl")["terminationGracePeriodSeconds"] >= grace_s


def test_a_node_that_waits_for_redis_is_not_ended_by_its_supervisor() -> None:
    """It shows its metrics only then. Docker and Kubernetes wait longer than the node itself; systemd does not ask."""
    wait_s = float(NODES["node1"]["BIGCRAWL_START_WAIT"])
    [check] = [rest for word, rest in ops_files.instructions() if word == "HEALTHCHECK"]
    [start_period] = re.findall(r"--start-period=(\w+)", check)
    assert seconds(start_period) > wait_s
    [container] = pod_of("crawl")["containers"]
    probe = container["startupProbe"]
    assert probe["periodSeconds"] * probe["failureThreshold"] > float(NODES["kubernetes"]["BIGCRAWL_START_WAIT"])


def test_probes_ask_where_the_node_answers() -> None:
    """Port and path are those of the metrics. The kubelet asks from outside the pod, the health check from inside."""
    [container] = pod_of("crawl")["containers"]
    [port] = container["ports"]
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"] == {"path": "/metrics", "port": port["name"]}
    assert str(port["containerPort"]) == NODES["kubernetes"]["BIGCRAWL_METRICS_PORT"]
    assert NODES["kubernetes"]["BIGCRAWL_METRICS_ADDRESS"] == "0.0.0.0"
    assert "BIGCRAWL_METRICS_ADDRESS" not in NODES["node1"]
    [check] = ops_files.argument_lists("HEALTHCHECK")
    assert f"http://127.0.0.1:{NODES['node1']['BIGCRAWL_METRICS_PORT']}/metrics" in check[-1]


def test_restarts_follow_the_exit_statuses() -> None:
    """A crawl that is finished is not begun again, what waiting does not fix is not tried, and all else is."""
    page = (PROJECT / "docs" / "operations.md").read_text("utf-8")
    table = page.partition("## Exit status")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (\d+) \| .+ \| (.+?) \|$", table, re.MULTILINE)
    assert {re.split("[:,]", advice)[0] for status, advice in rows if status == "0"} == {"no", "when you like"}
    assert {advice.partition(".")[0] for status, advice in rows if status == "1"} == {"when somebody has mended that"}
    assert [advice for status, advice in rows if status == str(STOOD_STILL)] == ["yes"]
    assert unit()["Restart"] == ["on-failure"]
    prevented = unit()["RestartPreventExitStatus"][-1].split()
    assert prevented == ["1", "2"]
    assert float(NODES["systemd"]["BIGCRAWL_START_WAIT"]) == BY_NAME["BIGCRAWL_START_WAIT"].high, "it is final"
    services = compose()["services"]
    assert {services[name]["restart"] for name in services if name != "redis"} == {"on-failure"}
    # Kubernetes starts every pod of a StatefulSet again, so a node there never finishes.
    assert NODES["kubernetes"]["BIGCRAWL_CLOSE"] == "forever"


def test_process_one_of_a_container_passes_signals_on() -> None:
    """A signal without a handler does not end process 1, and the watchdog ends a node by one."""
    assert ops_files.argument_lists("ENTRYPOINT") == [["tini", "--"]]
    [container] = pod_of("crawl")["containers"]
    assert "command" not in container, "it would replace the entrypoint"
    assert all("entrypoint" not in service for service in compose()["services"].values())


def test_every_place_runs_the_same_command() -> None:
    """The crawl of the seeds, in the project of ops/project."""
    [container] = pod_of("crawl")["containers"]
    [command] = [line.split() for line in unit()["ExecStart"]]
    program, *words = command
    assert program == "/opt/bigcrawl/venv/bin/scrapy"
    for found in (["scrapy", *words], compose()["services"]["node1"]["command"], container["args"]):
        assert found[:-1] == ["scrapy", "crawl", "broad", "-a"]
        assert re.fullmatch(r"seeds=/[\w/]+/seeds\.txt", found[-1])
    assert ops_files.argument_lists("CMD") == [["scrapy", "crawl", "broad"]]


def test_compose_mounts_what_is_there() -> None:
    """Volumes, secrets and services that a service names are defined, and files of ops/ exist."""
    said = compose()
    for service in said["services"].values():
        assert set(service["secrets"]) <= said["secrets"].keys()
        assert set(service.get("depends_on", ())) <= said["services"].keys()
        for volume in service["volumes"]:
            source, target = volume.split(":")[:2] if isinstance(volume, str) else (volume["source"], volume["target"])
            assert target.startswith("/")
            is_made = source == "./seeds.txt" or source in said["volumes"]
            assert is_made or (ops_files.COMPOSE.parent / source).exists(), source
    assert NODES["node1"][PASSWORD_FILE] == "/run/secrets/redis_password"
    assert NODES["node1"]["BIGCRAWL_REDIS_URL"] == "redis://redis:6379/0"


def selected(labels: dict[str, str]) -> list[str]:
    """The stateful sets whose pods have the labels."""
    sets = manifests("StatefulSet")
    return [
        each["metadata"]["name"]
        for each in sets
        if labels.items() <= each["spec"]["template"]["metadata"]["labels"].items()
    ]


def test_manifests_name_what_is_there() -> None:
    """Config maps and secrets exist or are made by the reader; selectors find their pods; services have their names."""
    there = {(each["kind"], each["metadata"]["name"]) for each in manifests()} | MADE_BY_HAND
    for each in manifests("StatefulSet"):
        pod = each["spec"]["template"]["spec"]
        assert ("Service", each["spec"]["serviceName"]) in there
        assert selected(each["spec"]["selector"]["matchLabels"]) == [each["metadata"]["name"]]
        mounted = {volume["name"]: volume for volume in pod["volumes"]}
        claims = {claim["metadata"]["name"] for claim in each["spec"]["volumeClaimTemplates"]}
        [container] = pod["containers"]
        assert {mount["name"] for mount in container["volumeMounts"]} == mounted.keys() | claims
        for volume in mounted.values():
            if "configMap" in volume:
                assert ("ConfigMap", volume["configMap"]["name"]) in there
            if "secret" in volume:
                assert ("Secret", volume["secret"]["secretName"]) in there
        for source in container.get("envFrom", ()):
            assert ("Secret", source["secretRef"]["name"]) in there if "secretRef" in source else True
    for kind, field in (("Service", ()), ("PodDisruptionBudget", ("matchLabels",))):
        for each in manifests(kind):
            labels = each["spec"]["selector"]
            for name in field:
                labels = labels[name]
            assert len(selected(labels)) == 1, each
    budget = manifest("PodDisruptionBudget", "crawl-nodes")["spec"]
    assert selected(budget["selector"]["matchLabels"]) == ["crawl"]
    assert budget["unhealthyPodEvictionPolicy"] == "AlwaysAllow", "nodes that wait for Redis hold up no machine"
    assert ("Service", "crawl-redis") in there, "the host of BIGCRAWL_REDIS_URL"
    assert NODES["kubernetes"]["BIGCRAWL_REDIS_URL"] == "redis://crawl-redis:6379/0"


def test_no_variable_of_kubernetes_can_look_like_a_setting() -> None:
    """It would add variables named after services; a pod that had them would not start."""
    for each in manifests("StatefulSet"):
        assert each["spec"]["template"]["spec"]["enableServiceLinks"] is False


def test_containers_run_without_root() -> None:
    """The image's user owns its only directory, and pods run as that user."""
    [user] = [rest for word, rest in ops_files.instructions() if word == "USER"]
    number, _, group = user.partition(":")
    assert any(f"--uid {number}" in rest for _, rest in ops_files.instructions())
    said = pod_of("crawl")["securityContext"]
    assert (said["runAsUser"], said["runAsGroup"], said["fsGroup"]) == (int(number), int(group), int(group))
    assert all(pod_of(each["metadata"]["name"])["securityContext"]["runAsNonRoot"] for each in manifests("StatefulSet"))


def test_redis_is_configured_as_the_crawl_needs_it() -> None:
    """In Kubernetes by the same files as under compose; a node finds no fault with it when it joins."""
    directives = dict(
        line.split(" ", 1)
        for line in (OPS / "redis" / "redis.conf").read_text("utf-8").splitlines()
        if line and not line.startswith("#")
    )
    assert directives["appendonly"] == "yes"
    assert (
        faults_of({"maxmemory": "1", "maxmemory_policy": directives["maxmemory-policy"], "aof_enabled": "1"}, 0) == []
    )
    held = manifest("ConfigMap", "crawl-redis")["data"]
    for name in ("redis.conf", "start.sh"):
        assert held[name] == (OPS / "redis" / name).read_text("utf-8"), f"ops/redis/{name} in ops/kubernetes/redis.yaml"
