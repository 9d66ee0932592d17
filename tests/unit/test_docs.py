"""The pages against the code: what they list is what there is, and their links lead somewhere."""

from __future__ import annotations

import pkgutil
import re
from pathlib import Path
from typing import Any

import pytest
from scrapy.http import HtmlResponse, Request

from bigcrawl.default_settings import BY_NAME
from bigcrawl.pipelines import page_writes
from bigcrawl.politeness import fetch_limit
from bigcrawl.stats import SCRAPY_STATS
from bigcrawl_simweb.model.web import Web
from scripts import write_docs
from tests.support.running.tables import each

PROJECT = Path(__file__).resolve().parents[2]
DOCS = PROJECT / "docs"
# With code to be copied.
GUIDES = ("alone", "budgets", "drum", "guide/focused", "guide/priorities", "guide/site", "simweb")
BESIDE_DOCS = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "examples/README.md")
PAGES = sorted([*(PROJECT / name for name in BESIDE_DOCS), *DOCS.rglob("*.md")])
LINK = re.compile(r"\[[^\]]+\]\(([^)\s]+)\)")
CODE_BLOCK = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)

# Whoever installs decides where packages come from; a page that names a host is wrong behind a mirror.
REGISTRIES = re.compile(
    r"pypi\.org|pythonhosted|registry\.npmjs|deb\.debian|hub\.docker|conda\.anaconda", re.IGNORECASE
)


def page_id(page: Path) -> str:
    return page.relative_to(PROJECT).as_posix()


def text_of(page: Path) -> str:
    return page.read_text("utf-8")


@pytest.mark.parametrize("name", write_docs.PAGES)
def test_what_is_written_from_tables_is_current(name: str) -> None:
    """`make docs` would leave the page as it is: what the tables, docstrings and commands say stands there."""
    assert write_docs.rewritten(name) == text_of(DOCS / name)


@each("page", PAGES, ids=page_id)
def test_a_setting_that_is_named_exists(page: Path) -> None:
    """No page speaks of a BIGCRAWL_ setting that would be refused."""
    named = set(re.findall(r"\bBIGCRAWL_[A-Z_]+[A-Z]\b", text_of(page)))
    assert named - set(BY_NAME) == set()


def test_the_commands_of_the_readme_exist() -> None:
    """Every `make` target and every script that README and CONTRIBUTING name is there."""
    targets = set(re.findall(r"^([a-z-]+):", text_of(PROJECT / "Makefile"), re.MULTILINE)) | {"bench-paired"}
    for page in (PROJECT / "README.md", PROJECT / "CONTRIBUTING.md"):
        named = set(re.findall(r"(?:^|`)make ([a-z][a-z-]*)", text_of(page), re.MULTILINE))
        assert named, page.name
        assert named <= targets
    assert len(re.findall(r"^#   make ", text_of(PROJECT / "Makefile"), re.MULTILINE)) <= 15
    for variable in re.findall(r"make crawl ([A-Z]+)=", text_of(PROJECT / "README.md")):
        assert f"\n{variable} ?=" in text_of(PROJECT / "Makefile")


def test_the_readme_is_read_in_three_minutes() -> None:
    """Details are in docs/."""
    assert 300 < len(text_of(PROJECT / "README.md").split()) <= 700


@each("page", PAGES, ids=page_id)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    """A relative link names a file of the project, and its anchor a heading there."""
    for target in LINK.findall(CODE_BLOCK.sub("", text_of(page))):
        if "://" in target:
            continue
        name, _, anchor = target.partition("#")
        path = (page.parent / name).resolve() if name else page
        assert path.exists(), target
        assert not anchor or anchor in anchors(path), target


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as they are made on the common hosts."""
    headings = re.findall(r"^#+ (.+)$", CODE_BLOCK.sub("", text_of(page)), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@each("page", PAGES, ids=page_id)
def test_no_page_names_a_package_registry(page: Path) -> None:
    """Where packages come from is the reader's choice."""
    assert REGISTRIES.search(text_of(page)) is None


@each("page", PAGES, ids=page_id)
def test_a_module_that_is_named_exists(page: Path) -> None:
    """A path below bigcrawl/, benchmarks/, tests/, scripts/ or docs/ in code quotes is one of the project's."""
    counted = {key for stat in SCRAPY_STATS for key in stat.keys}
    for name in re.findall(r"`((?:bigcrawl|benchmarks|tests|scripts|docs)/[\w./-]+)`", text_of(page)):
        assert name in counted or (PROJECT / name).exists(), name


def test_decisions_are_numbered_pages_that_say_what_they_cost() -> None:
    """No number is there twice; each page has context, choice, cost, and what would change our mind."""
    pages = sorted((DOCS / "decisions").glob("0*.md"))
    assert len({page.name[:4] for page in pages}) == len(pages)
    for page in pages:
        title, _, subject, *_ = text_of(page).split("\n")
        assert title.startswith(f"# {page.name[:4]} "), page.name
        assert subject.removeprefix("Subject: ") in write_docs.SUBJECTS, page.name
        sections = re.findall(r"^## (.+)$", text_of(page), re.MULTILINE)
        assert sections == ["Context", "Choice", "Cost", "What would change our mind"], page.name
        assert len(text_of(page).splitlines()) <= 62, f"{page.name} is longer than a page"


def test_the_changelog_says_of_each_change_what_kind_it_is() -> None:
    """Below a release stand the kinds of Keep a Changelog, each once and in its order, and every change in one."""
    kinds = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]
    releases = re.split(r"^## .+\n", text_of(PROJECT / "CHANGELOG.md"), flags=re.MULTILINE)[1:]
    assert releases
    for release in releases:
        opening, *sections = re.split(r"^### ", release, flags=re.MULTILINE)
        assert "\n- " not in opening
        found = [section.partition("\n")[0] for section in sections]
        assert found == [kind for kind in kinds if kind in found]
        assert all("\n- " in section for section in sections)


def test_the_index_leads_to_every_page() -> None:
    """Each page of docs/ is linked on docs/index.md, by what somebody wants who needs it."""
    linked = {target.partition("#")[0] for target in LINK.findall(text_of(DOCS / "index.md"))}
    pages = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md") if page.parent.name != "decisions"}
    assert pages - {"index.md"} == linked - {"decisions/index.md"}


def test_what_may_be_imported_can_be_and_guides_use_nothing_else() -> None:
    """Each name of docs/imports.md is there; what the guides have a reader name in code is one of them."""
    listed = set(re.findall(r"`(bigcrawl(?:_\w+)?\.[\w.]+)`", text_of(DOCS / "imports.md")))
    assert len(listed) > 10
    for name in listed:
        pkgutil.resolve_name(name)
    for page in (PROJECT / "README.md", *(DOCS / f"{guide}.md" for guide in GUIDES)):
        text = text_of(page)
        named = set(re.findall(r'"(bigcrawl\.[\w.]+\.[A-Z]\w+)"', text))
        for module, names in re.findall(r"^from (bigcrawl[\w.]*) import (.+)$", text, re.MULTILINE):
            named |= {f"{module}.{name.strip()}" for name in names.split(",")}
        assert named <= listed, page


def test_messages_that_are_explained_are_said() -> None:
    """Each message that the troubleshooting table quotes is said somewhere in the code."""
    source = "\n".join(path.read_text("utf-8") for path in sorted((PROJECT / "bigcrawl").rglob("*.py")))
    # Long messages are written as several strings, and an f-string's values stand between braces.
    joined = re.sub(r'"\s*\n\s*f?"', "", source)
    quoted = re.findall(r"^\| `([^`]+)` \|", text_of(DOCS / "operations.md"), re.MULTILINE)
    assert len(quoted) > 20
    for message in quoted:
        for part in message.split("..."):
            assert part.strip() in joined, message


def test_spider_of_the_readme_runs_as_it_is_copied() -> None:
    """Its block imports what it uses, and each callback that it names is there."""
    readme = text_of(PROJECT / "README.md")
    [block] = re.findall(r"^```python\n(import scrapy.*?)^```", readme, re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(block, "README.md", "exec"), names)  # noqa: S102 - the project's own page
    spider = names["MySpider"]()
    page = HtmlResponse("http://a.example/", body=b'<title>a</title><a href="/b">b</a>', encoding="utf-8")
    page.request = Request(page.url)
    item, *batches = spider.parse(page)
    assert item == {"title": "a"}
    assert [callable(getattr(spider, batch.callback_name or "parse")) for batch in batches] == [True, True]


def test_focused_spider_of_the_guide_runs_as_it_is_copied() -> None:
    """It is short, and has the links that its page speaks for before the others."""
    guide = text_of(DOCS / "guide" / "focused.md")
    [block] = re.findall(r"^```python\n(import scrapy.*?)^```", guide, re.MULTILINE | re.DOTALL)
    assert len(block.splitlines()) <= 50
    names: dict[str, Any] = {}
    exec(compile(block, "focused.md", "exec"), names)  # noqa: S102 - the project's own page
    body = "<p>5 \N{EURO SIGN}, 7 \N{EURO SIGN}<a href=/all>all</a><a href=/now>Sale!</a>".encode()
    item, *batches = names["CheapSpider"]().parse(HtmlResponse("http://a.example/", body=body, encoding="utf-8"))
    assert item == {"url": "http://a.example/", "prices": 2}
    assert [batch.urls for batch in batches] == [["http://a.example/now"], ["http://a.example/all"]]


def test_numbers_that_pages_repeat_are_the_codes() -> None:
    """How long something hangs, and how large the small web is, as the pages have it in words."""
    words = {2_000: "two seconds", 10_000: "ten seconds"}
    glossary = text_of(DOCS / "glossary.md")
    [hang] = re.findall(r"^\| hang \| .*", glossary, re.MULTILINE)
    for said in (hang, *re.findall(r"A fetch that has no answer.*", text_of(DOCS / "crowds.md"))):
        assert f"{words[fetch_limit.HANGING_MS]}, or three times the typical time if that is longer" in said
    assert f"WARC files: no answer for {words[page_writes.HANGING_MS]}" in hang
    web = Web(7, hosts=40, pages_per_host=40)
    assert f"40 pages each, {len(web.expected(8080, web.seeds(8080))):,} URLs" in text_of(DOCS / "simweb.md")
