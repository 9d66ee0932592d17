"""Which pages need a browser is told from their bytes, well and at a bounded cost."""

from __future__ import annotations

import pytest

from bigcrawl_rendering.detection import judge_page
from bigcrawl_rendering.scanning import CHARS_MAX, scan
from tests.annexes.rendering.fixtures import fixtures
from tests.support.costs.proportion import assert_costs
from tests.support.running.tables import each


@each("fixture", fixtures("written_with"), ids=lambda fixture: fixture.name)
def test_the_pages_that_it_was_written_with_are_told_apart(fixture) -> None:
    assert bool(judge_page(fixture.page)) is fixture.needs_browser


def test_pages_that_it_was_not_written_with_are_told_apart() -> None:
    """Precision is at least 0.95 and recall at least 0.9. The rules are not fitted to a page that fails."""
    pages = fixtures("held_out")
    chosen = [fixture for fixture in pages if judge_page(fixture.page)]
    right = sum(fixture.needs_browser for fixture in chosen)
    precision, recall = right / len(chosen), right / sum(fixture.needs_browser for fixture in pages)
    print(f"{len(pages)} pages: precision {precision:.3f}, recall {recall:.3f}")  # noqa: T201 - the figures of the guide
    assert precision >= 0.95
    assert recall >= 0.9
    assert not {fixture.page for fixture in pages} & {fixture.page for fixture in fixtures("written_with")}


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        ("<body><script>location.replace('/en')</script>", "redirect"),
        ("<div id=root></div><script src=/app.js></script>", "shell"),
        ("<noscript>This needs JavaScript</noscript><script>go()</script><p>Shop", "noscript"),
        ("<ul><li ng-repeat='p in list'>x</li></ul><script src=/jquery.js></script>", "templates"),
        ("<a href=#/a>a</a><a href=#/b>b</a><p>Text</p><script>go()</script>", "routes"),
        ("<p>x<script>document.write('<a href=/x>x</a>')</script>", "written"),
        ("<a href=/1>1</a><button>Show more posts</button><script>go()</script>", "list"),
        ("<div><template shadowrootmode=open><a href=/x>x</a></template></div>", "shadow"),
        ("<div id=root></div>", ""),
        ("", ""),
    ],
)
def test_the_reason_is_named(page: str, reason: str) -> None:
    assert judge_page(page).reason == reason


@pytest.mark.parametrize(
    "part",
    [
        "<script",
        "<a href='",
        "<!--",
        "<template>",
        "<div id=a",
        "<div a=b c",
        "<noscript><p>",
        "{{",
        "<b></b>",
        "<p a" + "a" * 5_000 + ">",
        "x ",
    ],
    ids=lambda part: part[:9],
)
def test_the_cost_is_linear_for_any_page(part: str) -> None:
    """Four times the page costs at most eight times as much."""
    small, large = (f"<script></script>{part * (chars // len(part))}" for chars in (CHARS_MAX // 8, CHARS_MAX // 2))
    assert_costs(8, lambda: judge_page(large), lambda: judge_page(small))


def test_only_the_beginning_of_a_page_is_read() -> None:
    assert scan("x" * (2 * CHARS_MAX)).text_chars == CHARS_MAX
