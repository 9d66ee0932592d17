"""Pages for tests of the parts."""

from __future__ import annotations

from typing import Any

from scrapy.http import HtmlResponse

from bigcrawl_forms.reading import Form, forms_of
from bigcrawl_forms.submitting import SearchForm

URL = "http://a.example/dir/page"


def page_of(body: str, url: str = URL, **fields: Any) -> HtmlResponse:
    return HtmlResponse(url, body=body.encode(), encoding="utf-8", **fields)


def first_form(body: str) -> Form:
    return forms_of(page_of(f"<html><body>{body}</body></html>"))[0]


def action_of(form: Form) -> str:
    return page_of("").urljoin(form.attributes.get("action", ""))


def search_form(body: str) -> SearchForm:
    form = first_form(body)
    return SearchForm.of(form, action_of(form), URL, "utf-8")
