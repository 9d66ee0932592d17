"""The scripts' headers are their contract: read here and compared with files, bodies, calls and key table."""

from __future__ import annotations

import ast
import inspect
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bigcrawl.redisdb import keys as keys_module
from bigcrawl.redisdb import script_texts, scripts
from bigcrawl.redisdb.keys import CrawlKeys, ListKeys, PartitionKeys, gate_prefix
from bigcrawl.redisdb.scripts import Call, EndedUrl, Identity, effect_of_answer, entries, looking
from tests.support.imports import parsed
from tests.support.running.tables import each

if TYPE_CHECKING:
    from collections.abc import Collection

PACKAGE = Path(scripts.__file__).parents[2]
FILES = tuple(sorted((PACKAGE / "redisdb" / "lua").rglob("*.lua")))
SCRIPT_NAMES = tuple(sorted(path.stem for path in FILES if path.parent.name != "prelude"))
PRELUDE_NAMES = tuple(sorted(path.stem for path in FILES if path.parent.name == "prelude"))
SECTIONS = ("Returns", "Guarantee", "Lost reply", "Late", "Cost")
TYPES = frozenset({"hash", "zset", "stream", "string", "prefix", "any"})
CRAWL = "crawl"
PARTITION = 7

USERS_LIST = "spider:start_urls"  # a key of the user's is no key of ours
KEYS = {
    "PartitionKeys": PartitionKeys(CRAWL, PARTITION),
    "CrawlKeys": CrawlKeys(CRAWL),
    "ListKeys": ListKeys(USERS_LIST),
}

GROUPED = {"admit_urls"}
"""Scripts that take a name, how many words follow, and these; not rows of one length."""

# One row of each sequence that a script takes behind its fixed arguments.
ROWS: dict[tuple[str, str], Any] = {
    ("admit_urls", "urls"): [("host", 1, b"1:url")],
    ("beat_node", "made"): (7, 8, 9),
    ("check_rights", "rows"): [("HGET", "key")],
    ("drop_urls", "urls"): [(b"1:url", b"outcome")],
    ("exchange_urls", "ahead"): [("host", 1)],
    ("exchange_urls", "ended"): [EndedUrl(1, 2, b"3:url", "status:200", 4, effect_of_answer(5))],
    ("reconcile_partition", "held"): [(1, "host", 2, b"1:url")],
    ("reconcile_partition", "earlier"): [(3,)],
    ("reconcile_partition", "sent_ends"): [(4,)],
    ("reconcile_partition", "ended"): [(2, "host", 3)],
    ("reconcile_partition", "places"): [("host", 3)],
    ("reconcile_partition", "rests"): {"host": 4},
    ("park_urls", "members"): [b"1:url"],
    ("record_errors", "rows"): [("error:dns\na.example", 2, "http://a.example/")],
    ("fold_tallies", "nodes"): {"node-1": "sha1"},
    ("pass_gates", "gates"): [("pld example.com", 1)],
    ("set_aside_urls", "urls"): [(1, b"batch")],
    ("renew_leases", "epochs"): [5],
    ("renew_leases", "partitions"): (PartitionKeys(CRAWL, PARTITION),),
    ("renew_block_leases", "blocks"): {PartitionKeys(CRAWL, PARTITION).leases: [(PARTITION, 5)]},
    ("sum_partitions", "partitions"): (PartitionKeys(CRAWL, PARTITION),),
    ("list_hosts", "partitions"): (PartitionKeys(CRAWL, PARTITION),),
    ("trim_partition", "state"): {"waiting": 5},
    ("unbury_urls", "url_keys"): [6],
}


@dataclass(frozen=True)
class DeclaredKey:
    kind: str
    name: str


@dataclass(frozen=True)
class Header:
    """What the comment above a script says."""

    name: str
    keys: dict[int, DeclaredKey]
    args: dict[int, str]
    repeated_from: int | None
    sections: list[str]


@cache
def lines_of(name: str) -> tuple[list[str], str]:
    """The header's lines without their dashes, and the body."""
    lines = script_texts.source(name).splitlines()
    length = next(i for i, line in enumerate(lines) if not line.startswith("--"))
    return [line[2:] for line in lines[:length]], "\n".join(lines[length:])


@cache
def header_of(name: str) -> Header:
    header, _ = lines_of(name)
    text = "\n".join(header)
    keys = {
        int(number): DeclaredKey(kind, key)
        for number, kind, key in re.findall(r"^ KEYS\[(\d+)\] (\w+) +([\w:]+)", text, re.MULTILINE)
    }
    before = text[: text.index("\n Returns:")]
    marks = list(re.finditer(r"ARGV\[(\d+)(\.\.\.)?\]", before))
    ends = [mark.start() for mark in marks[1:]] + [len(before)]
    args = {int(mark[1]): before[mark.end() : end] for mark, end in zip(marks, ends, strict=True)}
    repeated = [int(mark[1]) for mark in marks if mark[2]]
    sections = re.findall(r"^ ([A-Z][a-z]+(?: [a-z]+)?): \S", text, re.MULTILINE)
    return Header(header[0].split(":")[0].strip(), keys, args, repeated[0] if repeated else None, sections)


@cache
def functions() -> dict[str, Any]:
    """The functions of `scripts` that return a call."""
    return {
        name: function
        for name, function in (vars(scripts) | vars(looking) | vars(entries)).items()
        if inspect.isfunction(function) and function.__module__.startswith(f"{scripts.__name__}.")
        if str(inspect.signature(function).return_annotation).startswith("Call[")
    }


def call_with_sentinels(name: str, *, rows: bool, tables: Collection[str] = ()) -> tuple[Call[Any], dict[Any, str]]:
    """Call the function with a value of its own for each parameter; the call, and value -> parameter.

    With a row in each sequence, or in those named `tables`.
    """
    sentinels: dict[Any, str] = {"the-node": "node", 9_000: "epoch"}
    arguments: dict[str, Any] = {}
    for number, parameter in enumerate(inspect.signature(functions()[name]).parameters.values(), 9_001):
        annotation = str(parameter.annotation)
        if annotation in KEYS:
            arguments[parameter.name] = KEYS[annotation]
        elif annotation.startswith("Identity"):
            arguments[parameter.name] = Identity("the-node", 9_000)
        elif annotation == "UrlSought":
            arguments[parameter.name] = looking.UrlSought("the-host", 9_100, b"the-beginning")
            sentinels |= {"the-host": "host", 9_100: "key", b"the-beginning": "beginning"}
        elif (name, parameter.name) in ROWS:
            row = ROWS[name, parameter.name]
            arguments[parameter.name] = row if rows or parameter.name in tables else type(row)()
        elif parameter.name == "prefix":
            arguments[parameter.name] = gate_prefix("192.0.2.1")
        elif annotation != "bool":
            made = {"int": number, "str": f"the-{number}", "bytes": b"the-%d" % number}[annotation]
            arguments[parameter.name] = made
            sentinels[made] = parameter.name
    return functions()[name](**arguments), sentinels


def key_table() -> dict[str, str]:
    """Name -> type, from the table that opens `keys`."""
    pattern = r"^ +bigcrawl:(?:list:)?\{\S+?\}:(\w+:?)\S* +(\w+)"
    return {**dict(re.findall(pattern, keys_module.__doc__ or "", re.MULTILINE)), "list": "any"}


def test_functions_and_files_have_the_same_names() -> None:
    """Every script has the one function of its name that calls it, and every function its script."""
    assert SCRIPT_NAMES
    assert set(functions()) == set(SCRIPT_NAMES)
    for name in SCRIPT_NAMES:
        assert call_with_sentinels(name, rows=False)[0].name == name


def test_a_script_is_in_the_room_of_its_function() -> None:
    """`lua/hosts/put_robots.lua` is called by `scripts/hosts.py`. No two scripts have one name."""
    rooms = {path.stem: path.parent.name for path in FILES if path.parent.name != "prelude"}
    assert rooms == {name: function.__module__.rpartition(".")[2] for name, function in functions().items()}
    assert len(rooms) == len(SCRIPT_NAMES)


def test_scripts_are_called_through_their_functions_alone() -> None:
    """No other module builds a script call or sends EVAL; a function builds its own script's call only."""
    for path in PACKAGE.rglob("*.py"):
        source = path.read_text("utf-8")
        nodes = ast.walk(parsed(source)) if "Call(" in source else ()
        called = [node.func for node in nodes if isinstance(node, ast.Call)]
        builds = any(getattr(func, "id", getattr(func, "attr", "")) == "Call" for func in called)
        where = path.relative_to(PACKAGE).as_posix()
        assert not builds or where.startswith("redisdb/scripts/"), where
        assert "EVAL" not in source or where in ("redisdb/script_texts.py", "redisdb/rights.py"), where
    trees = [parsed(path.read_text("utf-8")) for path in Path(scripts.__file__).parent.glob("*.py")]
    for function in [node for tree in trees for node in tree.body if isinstance(node, ast.FunctionDef)]:
        names = {node.value for node in ast.walk(function) if isinstance(node, ast.Constant)} & set(SCRIPT_NAMES)
        assert names == ({function.name} & set(SCRIPT_NAMES))


class TestHeader:
    @each("name", SCRIPT_NAMES)
    def test_names_its_script_and_has_all_sections(self, name: str) -> None:
        """A header begins with its file's name and says result, guarantee, repeat and cost, in this order.

        Who uses preludes names them last.
        """
        header = header_of(name)
        assert header.name == name
        assert header.sections == [*SECTIONS, *(["Uses"] if script_texts.preludes(name) else [])]

    @each("name", SCRIPT_NAMES)
    def test_preludes_are_those_that_the_body_calls(self, name: str) -> None:
        """The header names every prelude that is called, and no other."""
        _, body = lines_of(name)
        called = {prelude for prelude in PRELUDE_NAMES if re.search(rf"\b{prelude}\(", body)}
        assert called == set(script_texts.preludes(name))
        assert len(script_texts.preludes(name)) == len(called)
        assert not re.search(rf"\b({'|'.join(PRELUDE_NAMES)})\b(?!\()", body), "no variable hides a prelude"

    @each("name", SCRIPT_NAMES)
    def test_keys_are_those_of_the_call(self, name: str) -> None:
        """KEYS are numbered through and are, by name and place, the keys that the function sends."""
        header = header_of(name)
        call, _ = call_with_sentinels(name, rows=True)
        sent = call.keys + call.beside
        assert list(header.keys) == list(range(1, len(sent) + 1))
        for declared, key in zip(header.keys.values(), sent, strict=True):
            ours = "list" if key == USERS_LIST else key.partition("}:")[2].rstrip("0123456789")
            assert declared.name == ("gate:" if ours == "server:" else ours)

    @each("name", SCRIPT_NAMES)
    def test_keys_have_the_types_of_the_key_table(self, name: str) -> None:
        """A key has the type that the table of keys gives it; so has what is appended to a prefix."""
        header, _ = lines_of(name)
        for number, declared in header_of(name).keys.items():
            assert declared.kind in TYPES
            wanted = key_table()["server:" if declared.name == "gate:" else declared.name]
            if declared.kind == "prefix":
                line = next(line for line in header if line.startswith(f" KEYS[{number}]"))
                assert re.search(rf"\+ \w+: {wanted}\b", line), f"{declared.name} holds a {wanted}"
            else:
                assert declared.kind == wanted

    @each("name", SCRIPT_NAMES)
    def test_keys_of_a_call_share_one_hash_tag(self, name: str) -> None:
        """All keys of a call live on one node of a cluster."""
        call, _ = call_with_sentinels(name, rows=True)
        assert len({key.partition("{")[2].partition("}")[0] or key for key in call.keys}) == 1

    @each("name", SCRIPT_NAMES)
    def test_arguments_are_those_of_the_call(self, name: str) -> None:
        """ARGV are numbered through, as many as the function sends, and named after its parameters."""
        header = header_of(name)
        call, sentinels = call_with_sentinels(name, rows=False)
        assert list(header.args) == list(range(1, len(header.args) + 1))
        fixed = len(header.args) - (header.repeated_from is not None)
        assert len(call.args) == fixed
        for number, value in enumerate(call.args, 1):
            words = [word for word in sentinels.get(value, "").split("_") if word not in ("ms", "max", "min")]
            text = header.args[number].lower()
            assert not words or any(word.rstrip("s") in text for word in words), f"ARGV[{number}] is {words}"

    @each("name", SCRIPT_NAMES)
    def test_rows_follow_the_fixed_arguments(self, name: str) -> None:
        """Whoever takes rows says from which argument on and with which columns."""
        header = header_of(name)
        call, _ = call_with_sentinels(name, rows=True)
        bare, _ = call_with_sentinels(name, rows=False)
        assert (len(call.args) > len(bare.args)) == (header.repeated_from is not None)
        if header.repeated_from is not None:
            assert header.repeated_from == len(bare.args) + 1
            columns = set()
            for table in [parameter for script, parameter in ROWS if script == name]:
                with_one, _ = call_with_sentinels(name, rows=False, tables=[table])
                columns.add(len(with_one.args) - len(bare.args))
            loops = re.findall(r"for i = (?:\d+|\w+ \+ 1), (?:#ARGV|\w+_end), (\d+) do", lines_of(name)[1])
            assert {int(step) for step in loops} == (set() if name in GROUPED else columns)

    @each("name", SCRIPT_NAMES)
    def test_body_uses_what_is_declared(self, name: str) -> None:
        """Every declared key and argument is used, nothing else is; only prefixes are appended to."""
        header = header_of(name)
        _, body = lines_of(name)
        assert {int(number) for number in re.findall(r"KEYS\[(\d+)\]", body)} == set(header.keys)
        used = {int(number) for number in re.findall(r"ARGV\[(\d+)\]", body)}
        columns = range(header.repeated_from or 0, 1000 if header.repeated_from else 0)
        assert used - set(columns) == set(header.args) - set(columns)
        for number, declared in header.keys.items():
            everywhere = len(re.findall(rf"KEYS\[{number}\]", body))
            appended = len(re.findall(rf"KEYS\[{number}\] \.\.", body))
            assert appended == (everywhere if declared.kind == "prefix" else 0), f"KEYS[{number}]"

    @each("name", SCRIPT_NAMES)
    def test_body_keeps_the_rules_of_the_house(self, name: str) -> None:
        """No key is searched for, no array unpacked on Lua's stack; the clock is the server's or a test's."""
        _, body = lines_of(name)
        assert not re.search(r"'(KEYS|SCAN|RANDOMKEY|FLUSH\w+)'|unpack|math\.random|os\.", body)
        commands = re.findall(r"redis\.call\(([^)]*)", body)
        assert all(re.match(r"'[A-Z]+'", command) for command in commands)
        assert "'TIME'" not in body
        assert body.count("now_ms(") == body.count("now_ms(ARGV[1])") == ("now_ms" in header_of(name).args.get(1, ""))


@pytest.mark.parametrize("prelude", PRELUDE_NAMES)
def test_a_prelude_is_the_one_function_of_its_name(prelude: str) -> None:
    """A file in `lua/prelude/` says what its function is for, defines it and does nothing; several scripts use it."""
    lines = (PACKAGE / "redisdb" / "lua" / "prelude" / f"{prelude}.lua").read_text("utf-8").splitlines()
    code = [line for line in lines if not line.startswith("--")]
    assert lines[0].startswith(f"-- {prelude}: ")
    assert code[0].startswith(f"local function {prelude}(")
    assert [line for line in code[1:] if not line.startswith(" ")] == ["end"]
    assert not re.search(r"KEYS|ARGV", "\n".join(lines)), "what it needs is handed over"
    users = [name for name in SCRIPT_NAMES if prelude in script_texts.preludes(name)]
    assert len(users) > 1
    assert all(f"\nlocal function {prelude}(" in "\n" + script_texts.source_for_many(name) for name in users)


def test_the_owner_is_asked_in_one_way() -> None:
    """No script compares owner and epoch itself, but those that give a partition to a node, or show whose it is."""
    comparing = {name for name in SCRIPT_NAMES if re.search(r"'HMGET', KEYS\[1\], 'node'", lines_of(name)[1])}
    assert comparing == {"claim_partition", "look_host", "look_partition", "sum_partitions"}
