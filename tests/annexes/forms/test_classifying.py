"""Which forms are search forms: each kind of the others is refused, for a reason."""

from __future__ import annotations

import pytest

from bigcrawl_forms.classifying import refusal_of, search_field_of
from tests.annexes.forms.form_fixtures import OTHERS, OTHERS_OF_SITES, SEARCHES, SEARCHES_OF_SITES
from tests.annexes.forms.pages import action_of, first_form
from tests.support.running.tables import each


def refusal(body: str, *, post_allowed: bool = False) -> str:
    form = first_form(body)
    return refusal_of(form, action_of(form), post_allowed=post_allowed)


@each("kind", SEARCHES)
def test_a_search_form_is_known(kind: str) -> None:
    assert refusal(SEARCHES[kind]) == ""


@each("kind", OTHERS)
def test_another_form_is_refused(kind: str) -> None:
    body, reason = OTHERS[kind]
    assert refusal(body) == reason


@each("kind", SEARCHES_OF_SITES)
def test_a_search_form_of_common_software_is_known(kind: str) -> None:
    assert refusal(SEARCHES_OF_SITES[kind]) == ""


@each("kind", OTHERS_OF_SITES)
def test_another_form_of_common_software_is_refused(kind: str) -> None:
    """Also if a rule lets it be sent by POST."""
    assert refusal(OTHERS_OF_SITES[kind]) != ""
    assert (refusal(OTHERS_OF_SITES[kind], post_allowed=True) != "") is (kind != "asp")


@each("kind", OTHERS)
def test_a_rule_that_names_a_form_allows_post_and_nothing_else(kind: str) -> None:
    body, reason = OTHERS[kind]
    named = refusal(body, post_allowed=True)
    assert named == "" if kind == "post" else named != ""
    assert reason in ("post", named)


@pytest.mark.parametrize("sign", ["password", "email", "tel", "file", "color", "url", "madeup"])
def test_a_field_of_a_wrong_type_spoils_every_search_form(sign: str) -> None:
    for body in SEARCHES.values():
        end = body.lower().rfind("</form>") % (len(body) + 1)
        assert refusal(f"{body[:end]}<input name=zz type={sign}>{body[end:]}").startswith("field"), body


def test_words_go_into_the_field_that_looks_most_like_a_search() -> None:
    for body, name in (
        ("<input name=author><input name=q>", "q"),
        ("<input name=a><input name=b type=search>", "b"),
        ("<input name=a><input name=b placeholder='Search'>", "b"),
        ("<input name=a><input name=b>", "a"),
        ("<input name=q readonly><input name=b>", "b"),
    ):
        field = search_field_of(first_form(f"<form>{body}</form>"))
        assert field is not None
        assert field.name == name
    assert search_field_of(first_form("<form><select name=a></select></form>")) is None
