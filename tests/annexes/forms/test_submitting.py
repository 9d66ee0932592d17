"""The request of a query is what a browser sends for the form."""

from __future__ import annotations

import json

from bigcrawl_forms.submitting import COMBINATIONS_MAX, Query, SearchForm
from tests.annexes.forms.pages import URL, action_of, first_form, search_form


def test_a_get_form_replaces_the_query_of_its_action() -> None:
    form = search_form(
        "<form action='/s?old=1'><input type=hidden name=v value=2><input name=q>"
        "<select name=kind><option value=''>any<option>a<option>b</select>"
        "<input type=checkbox name=c><button name=go value=1>Go</button><button name=other>x</button></form>"
    )
    assert form.request_of(Query("two words")) == ("http://a.example/s?v=2&q=two+words&kind=&go=1", "")
    assert form.request_of(Query("ä", ("b",))) == ("http://a.example/s?v=2&q=%C3%A4&kind=b&go=1", "")
    assert form.combinations() == [("a",), ("b",)]
    assert form.page == URL


def test_a_post_form_keeps_its_action_and_has_a_body() -> None:
    form = search_form("<form action='/s?x=1' method=POST><input name=q></form>")
    assert form.request_of(Query("a&b")) == ("http://a.example/s?x=1", "q=a%26b")


def test_words_are_sent_in_the_encoding_of_the_page() -> None:
    form = first_form("<form action=/s><input name=q></form>")
    latin = SearchForm.of(form, action_of(form), URL, "latin-1")
    assert latin.request_of(Query("é€"))[0] == "http://a.example/s?q=%E9%26%238364%3B"


def test_selects_that_arrange_results_keep_their_value() -> None:
    """So do those beyond two, and combinations are bounded: of too many, the larger select alone is filled."""
    names = ("sort", "per_page", "resultsPerPage", "lang", "order", "pagesize")
    selects = "".join(f"<select name={name}><option>1<option>2</select>" for name in names)
    assert search_form(f"<form action=/s><input name=q>{selects}</form>").combinations() == []
    select = "".join(f"<option>{number}" for number in range(40))
    many = search_form(f"<form><select name=a>{select}</select><select name=b>{select}<option>x</select><input name=q>")
    assert len(many.combinations()) == 40
    assert all(one == "" and other for one, other in many.combinations())
    options = "".join(f"<option>{number}" for number in range(900))
    assert len(search_form(f"<form><select name=a>{options}</select>").combinations()) <= COMBINATIONS_MAX
    three = search_form("<form>" + "".join(f"<select name=s{n}><option>1<option>2<option>3</select>" for n in range(3)))
    assert len(three.combinations()) == 4


def test_a_form_has_the_same_key_on_each_page_and_another_one_has_its_own() -> None:
    bodies = [
        "<form action=/s><input name=q><input type=hidden name=from value=a></form>",
        "<form action=/s><input type=hidden name=from value=b><input name=q value=x></form>",
        "<form action=/s><input name=q></form>",
        "<form action=/t><input name=q><input type=hidden name=from></form>",
    ]
    one, same, *others = [search_form(body).key for body in bodies]
    assert one == same
    assert len({one, *others}) == 3


def test_a_form_is_stored_as_json() -> None:
    form = search_form("<form><input name=q><select name=a><option>1<option>2</select></form>")
    again = SearchForm(**json.loads(json.dumps(form.as_plain())))
    assert again.key == form.key
    assert again.combinations() == form.combinations()
    assert again.request_of(Query("x", ("2",))) == form.request_of(Query("x", ("2",)))
