"""Any request that can be stored comes back as it was, over every step that its bytes take."""

from __future__ import annotations

import datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from scrapy import Request, Spider

from bigcrawl.exceptions import RequestNotStorableError
from bigcrawl.scheduler.adapter.request_codec import decode_request, encode_request
from bigcrawl.scheduler.records.body import look_at_body
from bigcrawl.scheduler.records.member import order_of, pack_member, unpack_member
from bigcrawl.scheduler.records.queued_url import QueuedUrl, decode_batch, encode_batch
from tests.support.keys import request_key


class ShopSpider(Spider):
    name = "shop"

    def parse_page(self, response: Any) -> None:
        """Names a callback."""

    def failed(self, failure: Any) -> None:
        """Names an errback."""


SPIDER = ShopSpider()

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
zones = st.sampled_from([None, datetime.UTC, datetime.timezone(datetime.timedelta(hours=-3, minutes=-30))])
atoms = (
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 64) - 1)
    | st.floats(allow_nan=False)
    | texts
    | st.binary(max_size=20)
    # The fold tells apart the hour that comes twice in a named zone; an offset needs none.
    | st.datetimes(timezones=zones).map(lambda moment: moment.replace(fold=0))
)
hashables = st.recursive(atoms, lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3), max_leaves=6)
values = st.recursive(
    atoms,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(hashables, inner, max_size=4)
        | st.sets(hashables, max_size=3)
    ),
    max_leaves=12,
)
urls = st.builds(
    "http://{}.example/{}?{}#{}".format,
    st.sampled_from("abc"),
    *(st.text("abc/.%20", max_size=8) for _ in range(3)),
)
requests = st.builds(
    Request,
    urls,
    callback=st.sampled_from([None, SPIDER.parse_page]),
    errback=st.sampled_from([None, SPIDER.failed]),
    method=st.sampled_from(["GET", "POST", "put", "HEAD", "X-OWN"]),
    headers=st.dictionaries(st.text("ab-", min_size=1, max_size=4), st.lists(st.binary(max_size=8), max_size=2)),
    body=st.binary(max_size=40),
    cookies=st.dictionaries(texts, texts, max_size=2) | st.just([{"name": "a", "value": "b", "path": "/"}]),
    meta=st.dictionaries(texts, values, max_size=4),
    encoding=st.sampled_from(["utf-8", "latin-1", "shift_jis"]),
    priority=st.integers(-(1 << 40), 1 << 40),
    dont_filter=st.booleans(),
    flags=st.lists(texts, max_size=2),
    cb_kwargs=st.dictionaries(texts, values, max_size=4),
)


def exactly(value: object) -> object:
    """The value with the type of each part beside it, since 1 == True == 1.0; sets in some fixed order."""
    if isinstance(value, dict):
        return dict, [(exactly(key), exactly(inner)) for key, inner in value.items()]
    if isinstance(value, set | frozenset):
        return type(value), sorted((exactly(inner) for inner in value), key=repr)
    if isinstance(value, list | tuple):
        return type(value), [exactly(inner) for inner in value]
    return type(value), repr(value)


@given(requests, st.booleans(), st.integers(0, 1 << 50), st.integers(0, 9))
def test_request_survives_the_whole_way(request: Request, checked: bool, seq: int, attempts: int) -> None:
    """Outbox, batch, admission and hand-out lose nothing, and never change the key."""
    before = exactly(request.to_dict(spider=SPIDER))
    url, canonical = encode_request(request, SPIDER, key_of=request_key, checked=checked, url_bytes_max=8192)
    assert exactly(request.to_dict(spider=SPIDER)) == before
    assert url.key == request_key(canonical, request.method, request.body)

    (arrived,) = decode_batch(encode_batch([url]))
    member = unpack_member(pack_member(seq, arrived, attempts))
    assert (member.seq, member.attempts, member.body) == (seq, attempts, url.body)
    assert look_at_body(member.body)[:3] == (request.url, False, request.errback is not None)

    found = decode_request(member.body, SPIDER)
    wanted = {**request.to_dict(spider=SPIDER), "meta": {"depth": 0, **request.meta}}
    given_back = found.to_dict(spider=SPIDER)
    for name in ("meta", "cb_kwargs"):
        assert sorted(map(repr, given_back[name])) == sorted(map(repr, wanted[name]))
        for key, value in wanted.pop(name).items():
            assert exactly(given_back[name][key]) == exactly(value)
        del given_back[name]
    assert exactly(given_back) == exactly(wanted)
    again, _ = encode_request(found, SPIDER, key_of=request_key, checked=checked, url_bytes_max=8192)
    assert again[:4] == url[:4]


@given(st.lists(st.sampled_from(["key", 7, None]), max_size=6), st.data())
def test_what_cannot_be_stored_is_found_wherever_it_is(path: list[str | int | None], data: st.DataObject) -> None:
    """The path in the error leads to the one value that cannot be stored."""
    culprit = object()
    value: Any = culprit
    for step in reversed(path):
        value = [data.draw(atoms), value] if step is None else {"other": data.draw(atoms), step: value}
    request = Request("http://a.example/", meta={"top": value})
    try:
        encode_request(request, SPIDER, key_of=request_key, checked=True, url_bytes_max=8192)
    except RequestNotStorableError as error:
        wanted = "".join("[1]" if step is None else f"[{step!r}]" for step in path)
        assert error.key_path == f"meta['top']{wanted}"  # noqa: PT017 - drawn, so no match can be said
    else:
        raise AssertionError("an object was stored")


@given(
    st.lists(
        st.tuples(st.integers(-(1 << 19) + 1, (1 << 19) - 1), st.integers(0, (1 << 33) - 1)),
        min_size=2,
        unique=True,
    )
)
def test_order_sorts_by_priority_then_arrival(ranks: list[tuple[int, int]]) -> None:
    """A back queue sorted by order, as doubles, is sorted by priority and then by arrival."""
    by_order = sorted(ranks, key=lambda rank: float(order_of(*rank)))
    assert by_order == sorted(ranks, key=lambda rank: (-rank[0], rank[1]))


@given(st.lists(st.tuples(st.integers(0, (1 << 64) - 1), texts, st.integers(), st.integers(0, 1), st.binary())))
def test_batch_comes_back(rows: list[tuple[int, str, int, int, bytes]]) -> None:
    """A batch is its URLs in order, whatever they hold."""
    urls = [QueuedUrl(key, host, priority % (1 << 31), flags, body) for key, host, priority, flags, body in rows]
    assert decode_batch(encode_batch(urls)) == urls
