"""The table of stats against the code that counts; sources are read, not run."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from bigcrawl.feature_list import modules_of
from bigcrawl.features.traps.shape import KINDS as SHAPES
from bigcrawl.scheduler.adapter.fetch_errors import error_outcome
from bigcrawl.scheduler.partition.tables import COUNTS
from bigcrawl.scheduler.records.outcomes import PAGE_RULES, REASONS
from bigcrawl.scheduler.rules.link_rules import RULES as LINK_RULES
from bigcrawl.stats import CRAWL_COUNTERS, SCRAPY_STATS
from bigcrawl.url.canonical import UrlError, canonicalize
from tests.support.imports import parsed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bigcrawl.table_rows import Stat

PROJECT = Path(__file__).resolve().parents[2]
PACKAGE = PROJECT / "bigcrawl"
KINDS = {"counter", "gauge", "mark"}
STATS_CALLS = {"inc_value", "set_value", "max_value", "min_value"}
OUTCOME = re.compile(r"(status|error|dropped|retried):.+")


@cache
def calls() -> tuple[tuple[str, str, ast.Call], ...]:
    """(path below bigcrawl/, name called, call) of every call in the package."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        where = path.relative_to(PACKAGE).as_posix()
        nodes = ast.walk(parsed(path.read_text("utf-8")))
        found += [(where, called_name(node), node) for node in nodes if isinstance(node, ast.Call)]
    return tuple(found)


def called_name(call: ast.Call) -> str:
    """`f` of f(), x.f() and x.y.f()."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def texts(node: ast.AST) -> list[str]:
    """The strings an expression may be: a constant, a choice of two, an f-string with {names} kept."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value]
    if isinstance(node, ast.IfExp):
        return texts(node.body) + texts(node.orelse)
    if isinstance(node, ast.BoolOp):
        return [text for value in node.values for text in texts(value)]
    if isinstance(node, ast.JoinedStr):
        parts = [texts(part)[0] if isinstance(part, ast.Constant) else "{}" for part in node.values]
        return ["".join(parts)]
    return []


def refusals() -> set[str]:
    """Every reason that `canonicalize` refuses a URL for."""
    reasons = set()
    for url in ("ftp://a.example/", "http://", "http://[/", "http://a.example/" + "a" * 9000):
        try:
            canonicalize(url)
        except UrlError as error:
            reasons.add(error.reason)
    return reasons


def expanded(reason: str) -> list[str]:
    return [reason.replace("{}", refusal) for refusal in refusals()] if "{}" in reason else [reason]


def scrapy_keys() -> Iterator[tuple[str, str]]:
    """(key, module) of what is counted in Scrapy's stats; reasons that come through a parameter included."""
    for where, name, call in calls():
        if name == "count_traits":
            yield from ((f"bigcrawl/traps/{kind}", where) for kind in SHAPES)
        elif name == "count_filtered":
            yield from ((f"bigcrawl/dropped/{rule}", where) for rule in ("scope", *LINK_RULES))
        elif name == "count_filtered_page":
            yield from ((f"bigcrawl/filtered/{rule}", where) for rule in PAGE_RULES)
        elif name in STATS_CALLS:
            yield from ((key, where) for key in texts(call.args[0]) if "{}" not in key)
        elif name == "UnreadablePageError":
            yield from ((f"bigcrawl/source/{reason}", where) for reason in texts(call.args[1]))
        elif name == "_meet_limit":
            yield from ((f"bigcrawl/limits/{reason}", where) for reason in texts(call.args[0]))
        elif name in {"record_unread", "BodyRefusedError"}:
            reasons = texts(call.args[1]) if name == "record_unread" else texts(call.args[-1])
            if "limit" in ast.unparse(call.args[1]) and where == "middlewares/links.py":
                reasons = [reason for reason in REASONS if reason.startswith("listing-")]
            yield from ((f"bigcrawl/limits/{reason}", where) for reason in reasons)
        elif name in {"count_dropped", "_count_dropped"}:
            for reason in texts(call.args[0]):
                yield from ((f"bigcrawl/dropped/{text}", where) for text in expanded(reason))


def outcome_keys() -> Iterator[str]:
    """The crawl counters that say how URLs ended."""
    for path in sorted((PACKAGE / "scheduler").rglob("*.py")):
        for node in ast.walk(parsed(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant | ast.JoinedStr):
                yield from (text for text in texts(node) if OUTCOME.fullmatch(text) and " " not in text)
    for where, name, call in calls():
        if not where.startswith("scheduler/"):
            continue
        if name == "give_up":
            yield from (f"dropped:{reason}" for reason in texts(call.args[1]))
        elif name == "Closed":
            reasons = [keyword.value for keyword in call.keywords if keyword.arg == "reason"]
            yield from (f"dropped:{text}" for reason in reasons for text in texts(reason))
        elif name == "give_back" and len(call.args) > 2:
            yield from texts(call.args[2])
    yield error_outcome(ValueError())


def script_fields() -> Iterator[tuple[str, str]]:
    """(field, script) of what the scripts write into a partition's state."""
    for path in sorted((PACKAGE / "redisdb" / "lua").rglob("*.lua")):
        text = path.read_text("utf-8")
        declared = re.search(r"^-- KEYS\[(\d)\] hash +state", text, re.MULTILINE)
        if declared:
            written = rf"'(?:HSET|HINCRBY)', KEYS\[{declared[1]}\],(.*)"
            for rest in re.findall(written, text):
                yield from ((field, path.name) for field in re.findall(r"'([a-z_]+)'", rest))
            yield from ((field, path.name) for field in re.findall(r"\braised\.([a-z_]+) = ", text))


def published_fields() -> list[str]:
    """What an owner publishes with `trim_partition`: in the last table of each function that does; and for features."""
    found = []
    for module, name in (("publishing", "call"), ("claiming/bring_up", "start_over")):
        tree = parsed((PACKAGE / "scheduler" / "owner" / f"{module}.py").read_text("utf-8"))
        functions = (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))
        publish = next(n for n in functions if n.name == name)
        table = [n for n in ast.walk(publish) if isinstance(n, ast.Dict)][-1]
        found += [text for key in table.keys if key is not None for text in texts(key)]
    for feature in modules_of("fold"):  # counts of what waits
        tree = parsed(Path(str(feature.__file__)).read_text("utf-8"))
        functions = (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef))
        tables = (n for one in functions if one.name == "waiting" for n in ast.walk(one) if isinstance(n, ast.Dict))
        found += [text for table in tables for key in table.keys if key is not None for text in texts(key)]
    return [*found, *COUNTS]


def listed(table: tuple[Stat, ...]) -> set[str]:
    return {key for stat in table for key in stat.keys}


def test_the_code_counts_what_the_table_lists_in_scrapys_stats() -> None:
    """Every key that is counted has its row, every row is counted, and by the modules it names."""
    found = list(scrapy_keys())
    assert {key for key, _ in found} == listed(SCRAPY_STATS)
    for stat in SCRAPY_STATS:
        assert {where for key, where in found if key in stat.keys} == set(stat.set_by.split(", ")), stat.key


def test_the_code_counts_what_the_table_lists_for_the_crawl() -> None:
    """Every field of a partition's state has its row, and every row is written somewhere."""
    # A status with its number is one that is looked for, not one that is made.
    made = [key for key in outcome_keys() if not re.fullmatch(r"status:\d+", key)]
    outcomes = {re.sub(r"^(\w+):\{\}$", r"\1", key) for key in made}
    rows = {re.sub(r"^(\w+):\{\w+\}$", r"\1", key) for key in listed(CRAWL_COUNTERS)}
    written = {field for field, _ in script_fields()} | set(published_fields())
    # `dropped:{reason}` itself is how a reason becomes a counter; the reasons are what is listed.
    assert outcomes - {"dropped"} | written == rows


def test_scripts_that_count_are_the_ones_the_table_names() -> None:
    """A counter that a script raises names each such script, and no other."""
    by_script: dict[str, set[str]] = {}
    for field, script in script_fields():
        by_script.setdefault(field, set()).add(script)
    for field in published_fields():
        by_script.setdefault(field, set()).add("trim_partition.lua")
    for stat in CRAWL_COUNTERS:
        if stat.key in by_script:
            assert set(stat.set_by.split(", ")) == by_script[stat.key], stat.key
        else:
            assert all((PACKAGE / module).is_file() for module in stat.set_by.split(", ")), stat.key


def test_a_row_says_all_there_is_to_say() -> None:
    """Keys are unique; kind, unit, meaning and values are filled in; a placeholder is one word."""
    rows = (*SCRAPY_STATS, *CRAWL_COUNTERS)
    assert len({stat.key for stat in rows}) == len(rows)
    for stat in rows:
        assert stat.kind in KINDS, stat.key
        assert stat.unit, stat.key
        assert stat.meaning.endswith("."), stat.key
        assert re.fullmatch(r"[a-z_/]+(:?\{[a-z]+\})?", stat.key), stat.key
        assert all(value and meaning for value, meaning in stat.values), stat.key
        assert bool(stat.values) <= ("{" in stat.key), stat.key
