"""The rights that the documented ACL rules give are those that scripts and modules need."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import bigcrawl
from bigcrawl.exceptions import ConfigError
from bigcrawl.redisdb import script_texts
from bigcrawl.redisdb.keys import PartitionKeys
from bigcrawl.redisdb.rights import NODE_COMMANDS, check_rights, key_patterns
from tests.support.imports import parsed
from tests.support.redis_servers.acl_rules import PAGE, make_user, rule_of
from tests.support.redis_servers.client_runs import append, run
from tests.support.redis_servers.redis_server import PrivateRedis

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from bigcrawl.redisdb.client import RedisClient

PACKAGE = Path(bigcrawl.__file__).parent
CONNECTION_COMMANDS = ("PING", "INFO", "SELECT", "SCRIPT|LOAD", "EVALSHA")
OPERATOR_COMMANDS = (
    *("DEL", "EXISTS", "GET", "PERSIST", "PEXPIRE", "PTTL", "SET", "TIME"),
    *("HDEL", "HGET", "HGETALL", "HINCRBY", "HKEYS", "HLEN", "HMGET", "HSET", "HSETNX", "HVALS"),
    *("XADD", "XINFO", "XRANGE", "XREVRANGE"),
    *("ZADD", "ZCARD", "ZCOUNT", "ZPOPMIN", "ZRANGE", "ZRANGEBYSCORE", "ZREM", "ZSCORE"),
    *("SCAN", "UNLINK"),
)
OPERATORS_SCRIPTS = (
    *("awaken_host", "unbury_urls", "append_batch", "look_crawl", "look_partition", "sum_partitions", "beat_node"),
    *("record_event", "announce_end", "tell_time", "list_hosts", "look_host", "look_orders", "look_pld", "look_url"),
    "watch_crawl",
)
OPERATORS_MODULES = [
    path for room in ("commands", "commands/*", "redisdb", "views") for path in PACKAGE.glob(f"{room}/*.py")
] + [
    PACKAGE / "scheduler" / "crawl" / f"{name}.py"
    for name in ("deletion", "fingerprints", "history", "membership", "survey", "stored_record")
]
OPERATORS_MODULES.append(PACKAGE / "scheduler" / "gates" / "dns_answers.py")  # explain asks for a host's addresses
OTHERS_SCRIPTS = {"take_entries", "read_queue"}  # of keys that are not the crawl's, often on another server
NOT_A_NODES = {"SCAN", "UNLINK"}


@pytest.fixture(scope="module")
def server() -> Iterator[PrivateRedis]:
    with PrivateRedis() as one:
        yield one


def called_by_scripts(names: Iterable[str]) -> set[str]:
    texts = [script_texts.source_for_many(name) for name in names]
    calls = re.compile(r"(?:redis\.p?call|call_many|ask_many)\('([A-Z]+)'")
    return {command for text in texts for command in calls.findall(text)}


def sent_by_modules(paths: Iterable[Path], known: set[str]) -> set[str]:
    """Constants with which a tuple or the arguments of a call begin, if they name a command of Redis."""
    found: set[str] = set()
    for path in paths:
        for node in ast.walk(parsed(path.read_text("utf-8"))):
            words = node.elts if isinstance(node, ast.Tuple) else node.args if isinstance(node, ast.Call) else []
            if words and isinstance(words[0], ast.Constant):
                found.add(str(words[0].value))
    without_others = {"ASKING", "CLUSTER", "EVALSHA", "INFO", "PING", "SCRIPT"}
    return (found & known) - without_others


@pytest.fixture
def known(server: PrivateRedis) -> set[str]:
    return {name.decode().upper() for name in server.client.execute_command("command list")}


def test_a_nodes_commands_are_those_it_sends(known: set[str]) -> None:
    """Those of all scripts, and those of all modules but the operator's."""
    modules = [path for path in PACKAGE.rglob("*.py") if path.parent.name not in ("simweb", "redisdb")]
    others = {"simweb", "commands", "views", "deletion.py"}
    modules = [path for path in modules if not others & {*path.parts}]
    needed = called_by_scripts(set(script_texts.script_names()) - OTHERS_SCRIPTS) | sent_by_modules(modules, known)
    assert set(NODE_COMMANDS) == needed | {"HMGET"}
    assert not NOT_A_NODES & set(NODE_COMMANDS)


def test_an_operators_commands_are_those_that_commands_send(known: set[str]) -> None:
    """By script or by module."""
    # What is asked of another crawler's Redis needs no rights in that of the crawl.
    paths = [path for path in OPERATORS_MODULES if path.name not in ("rights.py", "scrapy_redis.py")]
    assert set(OPERATOR_COMMANDS) == called_by_scripts(OPERATORS_SCRIPTS) | sent_by_modules(paths, known)


@pytest.mark.parametrize(("role", "commands"), [("node", NODE_COMMANDS), ("operator", OPERATOR_COMMANDS)])
def test_page_states_the_rule(role: str, commands: tuple[str, ...]) -> None:
    """Each command and key pattern, and no others."""
    words = rule_of(role)
    assert {word for word in words if word[0] == "+"} == {
        f"+{one.lower()}" for one in (*CONNECTION_COMMANDS, *commands)
    }
    assert {word for word in words if word[0] == "~"} == {f"~{pattern}" for pattern in key_patterns("NAME")}
    assert {"-@all", "resetchannels"} <= set(words)
    assert "`+cluster|slots +asking`" in PAGE.read_text("utf-8")


def refusal(url: str) -> str:
    """What `check_rights` says; empty if nothing is missing."""
    said: list[str] = []

    async def work(client: RedisClient) -> None:
        try:
            await check_rights(client, "crawl")
        except ConfigError as error:
            said.append(str(error))

    run(url, work)
    return said[0] if said else ""


def test_right_that_is_missing_is_named(server: PrivateRedis) -> None:
    """Each of them, command or key pattern, in one line. With the rule of the page none is."""
    assert refusal(make_user(server, "node", "crawl")) == ""
    for command in NODE_COMMANDS:
        said = refusal(make_user(server, "node", "crawl", f"-{command.lower()}"))
        assert f"+{command.lower()}" in said or f"'{command.lower()}'" in said, command
        assert "\n" not in said
    for pattern in key_patterns("crawl"):
        left = [f"~{other}" for other in key_patterns("crawl") if other != pattern]
        said = refusal(make_user(server, "node", "crawl", "resetkeys", *left))
        assert f"~{pattern}" in said or f"~{pattern.removesuffix('*')}" in said, pattern
    said = refusal(make_user(server, "node", "crawl", "-xadd", "-zadd"))
    assert "+xadd +zadd" in said, "all are named at once"


def test_rights_for_one_crawl_are_none_for_another(server: PrivateRedis) -> None:
    """Only what all crawls share is permitted."""
    said = refusal(make_user(server, "node", "other"))
    assert "~bigcrawl:{crawl}:* ~bigcrawl:{crawl:p*}:*," in said


def test_right_that_is_withdrawn_is_a_config_error(server: PrivateRedis) -> None:
    """A script that meets it in its middle is not repeated."""

    async def work(client: RedisClient) -> None:
        assert await client.run([append(PartitionKeys("crawl", 1), 1)]) == [True]
        make_user(server, "node", "crawl", "-xadd")
        with pytest.raises(ConfigError, match=r"does not permit .* docs/operations.md"):
            await client.run([append(PartitionKeys("crawl", 1), 2)])

    run(make_user(server, "node", "crawl"), work)
