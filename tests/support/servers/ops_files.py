"""What the files of ops/ say: the settings that each place gives a node, with all its files taken together."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import yaml

PROJECT = Path(__file__).resolve().parents[3]
OPS = PROJECT / "ops"
DOCKERFILE = OPS / "docker" / "Dockerfile"
COMPOSE = OPS / "docker" / "compose.yaml"
UNIT = OPS / "systemd" / "bigcrawl@.service"
MANIFESTS = sorted((OPS / "kubernetes").glob("*.yaml"))


def instructions() -> list[tuple[str, str]]:
    """The Dockerfile's instructions in order, each with its arguments on one line."""
    text = re.sub(r"^\s*#.*\n", "", DOCKERFILE.read_text("utf-8"), flags=re.MULTILINE)
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in lines) if word]


def argument_lists(word: str) -> list[list[str]]:
    """What CMD, ENTRYPOINT or HEALTHCHECK run: the JSON list of each such instruction."""
    return [json.loads(rest[rest.index("[") :]) for name, rest in instructions() if name == word]


def image_environment() -> dict[str, str]:
    """The image's ENV."""
    words = [word for name, rest in instructions() if name == "ENV" for word in shlex.split(rest)]
    return dict(word.split("=", 1) for word in words)


def compose() -> dict[str, Any]:
    """The compose file, with its anchors resolved."""
    found: dict[str, Any] = yaml.safe_load(COMPOSE.read_text("utf-8"))
    return found


def manifests(kind: str = "") -> list[dict[str, Any]]:
    """The Kubernetes manifests, all or those of one kind."""
    found = [each for path in MANIFESTS for each in yaml.safe_load_all(path.read_text("utf-8"))]
    return [each for each in found if kind in ("", each["kind"])]


def manifest(kind: str, name: str) -> dict[str, Any]:
    [found] = [each for each in manifests(kind) if each["metadata"]["name"] == name]
    return found


def unit() -> dict[str, list[str]]:
    """The values of each key of the systemd unit, in order."""
    found: dict[str, list[str]] = {}
    for line in UNIT.read_text("utf-8").splitlines():
        if "=" in line and not line.startswith("#"):
            key, _, value = line.partition("=")
            found.setdefault(key, []).append(value)
    return found


def assignments(path: Path) -> dict[str, str]:
    """The variables of an environment file."""
    lines = [line for line in path.read_text("utf-8").splitlines() if line and not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


def seconds(text: str) -> int:
    """A time as Docker and systemd write it: 60s, 10min."""
    [(number, what)] = re.findall(r"^(\d+)(s|m|min)$", text)
    return int(number) * (1 if what == "s" else 60)


def compose_environment(service: str) -> dict[str, str]:
    """The environment of a node of the compose file."""
    said = compose()["services"][service]
    return image_environment() | assignments(COMPOSE.parent / said["env_file"]) | said["environment"]


def unit_environment(instance: str, credentials: str = "/run/credentials", machine: str = "machine") -> dict[str, str]:
    """The environment of an instance of the unit, with the specifiers that it uses."""
    said = dict(value.split("=", 1) for value in unit()["Environment"])
    meanings = {"%i": instance, "%d": credentials, "%l": machine}
    own = {name: re.sub("%.", lambda found: meanings[found[0]], value) for name, value in said.items()}
    return own | assignments(UNIT.parent / "crawl.env")


def pod_environment(pod: str) -> dict[str, str]:
    """The environment of a node's pod, but for secrets."""
    [container] = manifest("StatefulSet", "crawl")["spec"]["template"]["spec"]["containers"]
    maps = [each["configMapRef"]["name"] for each in container["envFrom"] if "configMapRef" in each]
    given = {name: value for each in maps for name, value in manifest("ConfigMap", each)["data"].items()}
    fields = {
        each["name"]: {"metadata.name": pod}[each["valueFrom"]["fieldRef"]["fieldPath"]] for each in container["env"]
    }
    return image_environment() | given | fields
