"""The forms of a page, however it is written; a hostile page costs no more than its length."""

from __future__ import annotations

import pytest

from bigcrawl_forms.reading import FIELDS_MAX, FORMS_MAX, OPTIONS_MAX, forms_of
from tests.annexes.forms.pages import first_form, page_of
from tests.support.costs.proportion import assert_costs


def test_controls_have_the_values_that_a_browser_sends() -> None:
    form = first_form(
        "<form action='/s?a=1&amp;b=2'><input name=q value='a &amp; b'><input type=checkbox name=c checked>"
        "<input type=radio name=r value=1><input type=hidden name=h value=x><input name=d disabled>"
        "<select name=s><option value=1>One<option value=2 selected>Two</select>"
        "<select name=t><option>First<option disabled>Second</select><button name=b value=go>Go on</button></form>"
    )
    assert form.attributes["action"] == "/s?a=1&b=2"
    assert [(one.kind, one.name, one.value, one.is_on) for one in form.fields] == [
        ("text", "q", "a & b", True),
        ("checkbox", "c", "on", True),
        ("radio", "r", "1", False),
        ("hidden", "h", "x", True),
        ("text", "d", "", False),
        ("select", "s", "2", True),
        ("select", "t", "First", True),
        ("submit", "b", "go", True),
    ]
    assert form.fields[5].options == [("1", "One"), ("2", "Two")]
    assert form.fields[6].options == [("First", "First")]
    assert form.labels == ["Go on"]


@pytest.mark.parametrize(
    "hidden",
    [
        "<!-- <form action=/x> -->",
        "<script>'<form action=/x>'</script>",
        "<style><form></style>",
        "<template><form></template>",
        "<textarea><form action=/x></textarea>",
        "<p title='<form action=/x>'>",
        "<title><form></title>",
    ],
)
def test_what_is_no_element_is_no_form(hidden: str) -> None:
    [form] = forms_of(page_of(f"{hidden}<form action=/real></form>"))
    assert form.attributes["action"] == "/real"


def test_a_form_within_a_form_is_part_of_the_outer_one() -> None:
    """As in HTML; so a password behind an unclosed form is that form's."""
    [form] = forms_of(page_of("<form id=1><input name=a><form id=2><input name=b type=password>"))
    assert [one.name for one in form.fields] == ["a", "b"]


def test_a_control_belongs_to_the_form_that_it_names() -> None:
    first, second = forms_of(page_of("<input name=z form=b><form id=a><input name=x form=b></form><form id=b></form>"))
    assert (first.fields, [one.name for one in second.fields]) == ([], ["z", "x"])


def test_what_is_read_of_a_page_is_bounded() -> None:
    assert len(forms_of(page_of("<form></form>" * 1_000))) == FORMS_MAX
    form = first_form("<form>" + "<input name=a>" * 1_000)
    assert (len(form.fields), form.is_cut) == (FIELDS_MAX, True)
    form = first_form("<form><select name=s>" + "<option>a" * 5_000)
    assert len(form.fields[0].options) == OPTIONS_MAX
    assert first_form("<form>" + "<option>" * 50_000 + "<input type=password>").is_cut
    assert first_form(f"<form><input name=a value={'x' * 9_000}></form>").is_cut


@pytest.mark.parametrize(
    "piece",
    [
        "<form", "<form ", "<input a='", '<input a="', "<!--", "<script>", "<textarea>", "<option", "<a b=", "=", "<",
        "</", "<select><option>x", "<label>", "<button>", "<form><input form=a>", "<form></form>", "<p '", "\"'=",
    ],
)  # fmt: skip
def test_a_hostile_page_costs_what_its_length_costs(piece: str) -> None:
    short, long = (page_of(piece * (chars // len(piece))) for chars in (60_000, 480_000))
    assert_costs(24, lambda: forms_of(long), lambda: forms_of(short))
