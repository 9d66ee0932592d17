"""`make docs`: write the reference pages from what they are about; with `--check` say which are not current.

What is written: lines of facts and tables, whole blocks between `<!-- begin: NAME -->` and `<!-- end -->`, and the
heading of each setting and key. Everything else on a page is written by hand and stays, below the heading that it
stood below. To add a setting, a key, a stat, a command or a decision: add it where it is, and run `make docs`.
"""

from __future__ import annotations

import argparse
import inspect
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from scrapy.settings import Settings

import bigcrawl.scheduler
from bigcrawl.commands.actions import ACTIONS
from bigcrawl.commands.frontier import Command
from bigcrawl.default_settings import BY_NAME, MATTER_MOST, TABLE
from bigcrawl.metrics.outcomes import Metric
from bigcrawl.metrics.table import SHOWN_ENDS
from bigcrawl.metrics.table import TABLE as METRICS_TABLE
from bigcrawl.redisdb import keys
from bigcrawl.scheduler.crawl.history import COLUMNS
from bigcrawl.scheduler.node import node
from bigcrawl.stats import CRAWL_COUNTERS, SCRAPY_STATS
from bigcrawl.table_rows import Setting, Stat

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

DOCS = Path(__file__).resolve().parents[1] / "docs"
GROUPS_OF_KEYS = ("Of a partition", "Of a crawl", "Above all crawls")
SETTINGS_HEAD = ("setting", "default", "meaning")


class PageError(Exception):
    """A page has what its table has not, or lacks a block."""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown; bars within a cell are escaped, and so are what looks like tags outside of code."""
    first, *others = ("| " + " | ".join(map(cell, line)) + " |\n" for line in (head, *rows))
    return f"{first}|{'---|' * len(head)}\n" + "".join(others)


def cell(text: str) -> str:
    text = text.replace("|", "\\|")
    return text if "`" in text else text.replace("<", "&lt;")


def anchor(heading: str) -> str:
    """A heading's anchor, as the common hosts make it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def with_block(page: str, name: str, text: str) -> str:
    """The page with what stands between a block's two marks replaced."""
    pattern = rf"(<!-- begin: {re.escape(name)} -->\n).*?(<!-- end -->)"
    if len(re.findall(pattern, page, re.DOTALL)) != 1:
        raise PageError(f"there must be one block <!-- begin: {name} --> ... <!-- end -->")
    return re.sub(pattern, lambda marks: f"{marks[1]}\n{text}\n{marks[2]}", page, flags=re.DOTALL)


def with_sections(page: str, wanted: dict[str, str], is_ours: re.Pattern[str], written: re.Pattern[str]) -> str:
    """The page with these sections in this order, each with its written part and the prose it had.

    Args:
        page: as it is; its opening stays in front, other sections stay in front or go to the end, as they stood.
        wanted: heading with its marks, to the part that is written; a group's comes behind its prose.
        is_ours: headings that may only be there if they are wanted.
        written: finds what was written before, and is not prose.

    Raises:
        PageError: the page has a section of ours that is not wanted, or one twice; its prose would be lost.
    """
    start, *parts = re.split(r"^(?=###? )", page, flags=re.MULTILINE)
    prose, others = dict.fromkeys(wanted, ""), []
    has_begun = False
    for part in parts:
        heading, _, text = part.partition("\n")
        has_begun = has_begun or heading in wanted
        if heading in wanted and prose[heading]:
            raise PageError(f"{heading!r} has two sections: make one of them")
        if heading in wanted:
            prose[heading] = written.sub("", text).strip()
        elif is_ours.match(heading):
            raise PageError(f"{heading!r} is not in the table: rename its section, or remove it")
        elif has_begun:
            others.append(part)
        else:
            start += part
    sections = []
    for heading, part in wanted.items():
        texts = [prose[heading], part] if heading.startswith("## ") else [part, prose[heading]]
        sections.append("\n\n".join([heading, *(text.strip() for text in texts if text)]) + "\n\n")
    return (start + "".join(sections) + "".join(others)).rstrip() + "\n"


# --- settings


def number(value: float) -> str:
    return f"{value:,.10g}"


def default_of(setting: Setting) -> str:
    """The default as a user writes it, with its unit."""
    if setting.default is None:
        return "unset"
    if setting.default in ("", []):
        return "empty"
    default = f"{setting.default:g}" if isinstance(setting.default, float) else str(setting.default)
    return f"`{default}` {setting.unit}".rstrip()


def facts_of(setting: Setting) -> str:
    """The line below a setting's heading: default, unit, bounds, and where it must be the same."""
    facts = [f"Default {default_of(setting)}"]
    if setting.low is not None and setting.high is not None:
        facts.append(f"from {number(setting.low)} to {number(setting.high)}")
    elif setting.low is not None:
        facts.append(f"at least {number(setting.low)}")
    if setting.choices:
        facts.append("one of " + ", ".join(f"`{choice}`" for choice in setting.choices))
    if setting.fixed:
        facts.append("fixed for the crawl's life")
    if setting.alike:
        facts.append("the same on all nodes")
    return "; ".join(facts) + "."


def setting_row(setting: Setting) -> tuple[str, str, str]:
    return f"[{setting.name}](#{anchor(setting.name)})", default_of(setting), setting.meaning


def settings_page(page: str) -> str:
    """A section for each group, with a table of its settings, and one for each setting."""
    groups: dict[str, list[Setting]] = {}
    for row in TABLE:
        if isinstance(row, Setting):
            groups[next(reversed(groups))].append(row)
        else:
            groups[row] = []
    wanted = {}
    for title, rows in groups.items():
        wanted[f"## {title}"] = table(SETTINGS_HEAD, map(setting_row, rows))
        wanted |= {f"### {setting.name}": facts_of(setting) for setting in rows}
    head = re.escape(table(SETTINGS_HEAD, ()))
    written = re.compile(rf"\A\s*Default .*\n|^{head}(?:\|.*\n)+", re.MULTILINE)
    page = with_sections(page, wanted, re.compile("### BIGCRAWL_"), written)
    matter = table(SETTINGS_HEAD, (setting_row(BY_NAME[name]) for name in MATTER_MOST))
    titles = re.findall(r"^## (.+)$", page, re.MULTILINE)
    page = with_block(page, "the settings that matter most", matter)
    return with_block(page, "contents", "".join(f"- [{title}](#{anchor(title)})\n" for title in titles))


# --- stats


def stats_page(page: str) -> str:
    """The rows of both tables, and what each placeholder stands for."""
    for name, stats in (("in Scrapy's stats", SCRAPY_STATS), ("of the whole crawl", CRAWL_COUNTERS)):
        rows = ((f"`{s.key}`", s.kind, s.unit, s.meaning, s.set_by) for s in stats)
        page = with_block(page, name, table(("key", "kind", "unit", "meaning", "set by"), rows))
        values = "\n".join(values_of(stat) for stat in stats if stat.values)
        page = with_block(page, f"values {name}", values)
    return page


def values_of(stat: Stat) -> str:
    placeholder = stat.key[stat.key.index("{") + 1 : stat.key.index("}")]
    rows = ((f"`{value}`", meaning) for value, meaning in stat.values)
    return f"The values of `{stat.key}`:\n\n" + table((placeholder, "meaning"), rows)


# --- metrics


def metrics_page(page: str) -> str:
    """A table of metrics for each group."""
    groups: dict[str, list[Metric]] = {}
    for row in METRICS_TABLE:
        if isinstance(row, Metric):
            groups[next(reversed(groups))].append(row)
        else:
            groups[row] = []
    head = ("metric", "kind", "label and its values", "what", "source")
    return with_block(
        page,
        "metrics",
        "\n".join(f"### {title}\n\n{table(head, map(metric_row, rows))}" for title, rows in groups.items()),
    )


def metric_row(metric: Metric) -> tuple[str, ...]:
    shown = metric.name + SHOWN_ENDS.get(metric.kind, "")
    label = f"{metric.label}: {', '.join(metric.values)}" if metric.values else metric.label
    return f"`{shown}`", metric.kind, label, metric.help, metric.source


# --- Redis keys


def history_page(page: str) -> str:
    """The columns of a crawl's history, in their order."""
    rows = ((f"`{column.name}`", column.kind, column.unit, column.meaning) for column in COLUMNS)
    return with_block(page, "columns", table(("column", "kind", "unit", "what"), rows))


def key_rows() -> list[tuple[str, str, str]]:
    """(pattern, type, purpose) of each key in the table of redisdb/keys.py."""
    return re.findall(r"^ {4}(bigcrawl:\S+) +(\w+) {2,}(.+)$", keys.__doc__ or "", re.MULTILINE)


def group_of_key(pattern: str) -> str:
    return GROUPS_OF_KEYS[0 if ":p<id>}" in pattern else 1 if "{<crawl>}" in pattern else 2]


def keys_page(page: str) -> str:
    """A table of all keys, and a section for each."""
    rows = key_rows()
    wanted = {}
    for group in GROUPS_OF_KEYS:
        wanted[f"## {group}"] = ""
        wanted |= {f"### `{key}` ({kind})": "" for key, kind, _ in rows if group_of_key(key) == group}
    page = with_sections(page, wanted, re.compile("### `bigcrawl:"), re.compile(r"(?!)"))
    return with_block(page, "keys", table(("key", "type", "what"), ((f"`{key}`", *rest) for key, *rest in rows)))


# --- commands


def commands_page(page: str) -> str:
    """What each action does, by its function's docstring, and the options, by their parsers."""
    actions = []
    for name, action in ACTIONS.items():
        told, *_ = (inspect.getdoc(action.load()) or "").split("\n")
        actions.append((f"`scrapy frontier {name} {action.words}".rstrip() + "`", told))
    command = Command()
    command.settings = Settings()
    inherited = options_added_by(super(Command, command).add_options)
    rows = {row: None for row in options_added_by(command.add_options) if row not in inherited}
    for action in ACTIONS.values():
        if add_options := action.load("_options"):  # an action may bring its own
            rows |= dict.fromkeys(options_added_by(add_options))
    page = with_block(page, "commands", table(("command", "what it does"), actions))
    return with_block(page, "options", table(("option", "meaning"), rows))


def options_added_by(add_options: Callable[[argparse.ArgumentParser], object]) -> list[tuple[str, str]]:
    """(option, meaning) of what a function adds to a parser."""
    parser = argparse.ArgumentParser(conflict_handler="resolve")
    add_options(parser)
    rows = []
    for option in (option for group in parser._action_groups for option in group._group_actions):
        value = f" {option.metavar}" if option.metavar else ""
        if option.option_strings and option.dest != "help":
            rows.append((f"`{', '.join(option.option_strings)}{value}`", option.help or ""))
    return rows


# --- stories and decisions


def life_page(page: str) -> str:
    """The scheduler's docstring, which tells the life of a URL."""
    return with_block(page, "life of a URL", inspect.getdoc(bigcrawl.scheduler) or "")


def architecture_page(page: str) -> str:
    """A node's loops, from the docstring of node.py."""
    loops = re.findall(r"^ {4}(\w+) {2,}(\S.*)$", node.__doc__ or "", re.MULTILINE)
    return with_block(page, "loops", table(("loop", "when, and what"), ((f"**{name}**", text) for name, text in loops)))


SUBJECTS: Final = {
    "frontier": "The frontier",
    "partitions": "Partitions on disk and their owners",
    "redis": "Redis",
    "nodes": "Nodes and crawls",
    "politeness": "Politeness",
    "budgets": "Budgets, traps and blacklists",
    "priorities": "Priorities",
    "links": "URLs and links",
    "fetching": "Fetching and DNS",
    "scrapy": "Spiders, requests and items of Scrapy",
    "pages": "Stored pages",
    "copies": "Copies and mirrors",
    "revisits": "Pages that are visited again",
    "watching": "Watching and steering",
    "code": "Code and documentation",
    "tests": "Tests",
}


def decisions_page(page: str) -> str:
    """The records of decisions by subject, from the first lines of each."""
    rows: dict[str, list[tuple[str, str]]] = {subject: [] for subject in SUBJECTS}
    for path in sorted((DOCS / "decisions").glob("0*.md")):
        title, _, subject, *_ = path.read_text("utf-8").split("\n")
        rows[subject.removeprefix("Subject: ")].append((f"[{path.name[:4]}]({path.name})", title.partition(" ")[2][5:]))
    tables = [f"## {heading}\n\n{table(('', ''), rows[subject])}" for subject, heading in SUBJECTS.items()]
    return with_block(page, "decisions", "\n".join(tables))


PAGES: dict[str, Callable[[str], str]] = {
    "architecture.md": architecture_page,
    "commands.md": commands_page,
    "decisions/index.md": decisions_page,
    "history.md": history_page,
    "life-of-a-url.md": life_page,
    "metrics.md": metrics_page,
    "redis-keys.md": keys_page,
    "settings.md": settings_page,
    "stats.md": stats_page,
}


def rewritten(name: str) -> str:
    """A page as it should be.

    Raises:
        PageError: which says what to mend on it by hand.
    """
    try:
        return PAGES[name]((DOCS / name).read_text("utf-8"))
    except PageError as error:
        raise PageError(f"docs/{name}: {error}") from None


def main() -> int:
    """Write what is not current; the exit status is 1 if a page cannot be written, or with `--check` if one is not."""
    is_check = "--check" in sys.argv[1:]
    status = 0
    for name in PAGES:
        path = DOCS / name
        try:
            text = rewritten(name)
        except PageError as error:
            print(error, file=sys.stderr)
            status = 1
            continue
        if text != path.read_text("utf-8"):
            print(f"docs/{name} is not current: make docs" if is_check else f"docs/{name} is written anew")
            status = 1 if is_check else status
            if not is_check:
                path.write_text(text, "utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main())
