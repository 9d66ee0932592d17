"""Requests and links as bytes: what comes back, what is refused, and how a URL is ordered."""

from __future__ import annotations

import datetime
import enum
import io
import sys
from dataclasses import InitVar, dataclass, field
from decimal import Decimal
from typing import Any, ClassVar, NamedTuple

import msgpack
import numpy as np
import pytest
from scrapy import Field, FormRequest, Item, Request, Spider
from scrapy.http import JsonRequest, XmlRpcRequest

from bigcrawl.exceptions import ContractError, RequestNotStorableError
from bigcrawl.links import Links
from bigcrawl.scheduler.adapter.request_codec import (
    FOUND,
    NO_ORIGIN,
    PARENT,
    PARENT_BYTES_MAX,
    LinkOrigin,
    decode_body,
    decode_request,
    encode_request,
    links_encoder,
    record_origin,
)
from bigcrawl.scheduler.records.body import look_at_address, look_at_body
from bigcrawl.scheduler.records.member import Member, moved_member, order_of, pack_member, unpack_member
from bigcrawl.scheduler.records.queued_url import UNCHECKED, BatchFormatError, QueuedUrl, decode_batch, encode_batch
from bigcrawl.url.canonical import UrlError, canonicalize
from tests.support.keys import request_key, url_key

URL = "http://a.example/path?b=2&a=1"
BERLIN = datetime.timezone(datetime.timedelta(hours=1))


class Basket(Item):
    goods = Field()
    owner = Field()


@dataclass
class Point:
    x: int
    y: tuple[int, ...] = ()
    norm: float = field(init=False, default=0.5)


class Pair(NamedTuple):
    left: Any
    right: Any


class Grade(enum.Enum):
    HIGH = "high"
    LOW = 7


class Step(enum.IntEnum):
    FIRST = 1


class Side(enum.Flag):
    LEFT = 1
    RIGHT = 2


class Inner:
    class Kind(enum.Enum):
        HARD = 1


@dataclass(frozen=True, slots=True)
class Fixed:
    when: datetime.date
    price: Decimal


@dataclass
class Counted:
    """Counts how often its own code ran."""

    made: ClassVar[list[str]] = []
    given: InitVar[int]
    number: int = 0
    later: list[int] = field(default_factory=list, init=False)

    def __post_init__(self, given: int) -> None:
        self.number += given
        self.made.append("made")


class ShopSpider(Spider):
    name = "shop"

    def parse_page(self, response: Any) -> None:
        """Names a callback."""

    def failed(self, failure: Any) -> None:
        """Names an errback."""


@pytest.fixture
def spider() -> ShopSpider:
    return ShopSpider()


def stored(request: Request, spider: Spider) -> QueuedUrl:
    """The request as a partition's owner gets it: encoded, batched and admitted."""
    url, _ = encode_request(request, spider, key_of=request_key, checked=True, url_bytes_max=8192)
    (arrived,) = decode_batch(encode_batch([url]))
    assert arrived == url
    member = unpack_member(pack_member(7, arrived, attempts=2))
    assert member == Member(7, url.key, url.priority, url.flags, 2, url.body)
    return arrived


def round_trip(request: Request, spider: Spider) -> Request:
    return decode_request(stored(request, spider).body, spider)


def kept(value: object, spider: Spider) -> Any:
    """What becomes of a value in a request's meta."""
    return round_trip(Request(URL, meta={"value": value}), spider).meta["value"]


def test_every_attribute_comes_back(spider: ShopSpider) -> None:
    """All that a Request holds survives, callbacks as methods of the spider that gets it."""
    request = Request(
        f"{URL}#fragment",
        callback=spider.parse_page,
        errback=spider.failed,
        method="PUT",
        headers={"X-Many": ["one", "two"], "Accept": "text/html"},
        body=b"\x00\xff",
        cookies=[{"name": "basket", "value": "1", "domain": "a.example"}],
        meta={"depth": 4, "download_timeout": 2.5},
        encoding="latin-1",
        priority=-12,
        dont_filter=True,
        flags=["cached"],
        cb_kwargs={"number": 1},
    )
    found = round_trip(request, spider)
    assert found.to_dict(spider=spider) == request.to_dict(spider=spider)
    assert found.callback == spider.parse_page
    assert found.errback == spider.failed
    assert found.headers.getlist("X-Many") == [b"one", b"two"]


@pytest.mark.parametrize(
    "request_",
    [
        FormRequest(URL, formdata={"a": ["1", "2"], "b": "caf\u00e9"}),
        JsonRequest(URL, data={"a": [1, None]}, dumps_kwargs={"sort_keys": True}),
        XmlRpcRequest("http://a.example/rpc", methodname="add", params=(1, 2)),
    ],
    ids=lambda request: type(request).__name__,
)
def test_subclasses_come_back_as_what_they_are(request_: Request, spider: ShopSpider) -> None:
    """A FormRequest is a FormRequest again, with the same method, headers, body and key."""
    found = round_trip(request_, spider)
    assert type(found) is type(request_)
    assert {**found.to_dict(), "meta": {}} == {**request_.to_dict(), "meta": {}}
    again, _ = encode_request(found, spider, key_of=request_key, checked=True, url_bytes_max=8192)
    assert again.key == stored(request_, spider).key == request_key(request_.url, request_.method, request_.body)


@pytest.mark.parametrize(
    "value",
    [
        (1, ("two", [3.5])),
        pytest.param({1, "two"}, id="set of two kinds"),  # its repr is another in each process
        frozenset({(1, 2)}),
        {(1, 2): {"deep": ({b"raw"},)}},
        {7: "int key", None: "none", True: "bool"},
        datetime.datetime(2026, 11, 21, 12, 30, 1, 5, tzinfo=datetime.UTC),
        [datetime.datetime(2026, 11, 21, 12, 30, tzinfo=BERLIN), datetime.datetime(2026, 1, 2)],  # noqa: DTZ001 - it has none
        b"\x00\xff",
        "caf\u00e9 \U0001f600",
        -(1 << 63),
        (1 << 64) - 1,
        [None, True, 1.5, float("inf")],
        Basket(goods=[(1, 2)], owner=Point(1, (2, 3))),
        Point(1, (2,)),
        Pair({1}, Pair("a", b"b")),
        datetime.date(2026, 11, 23),
        datetime.time(5, 30, tzinfo=datetime.UTC),
        datetime.timedelta(-1, 5, 7),
        [Decimal("1.10"), Decimal("-1E+400"), Decimal("Infinity")],
        [Grade.LOW, {Grade.HIGH: Step.FIRST}, Side.LEFT, Side.LEFT | Side.RIGHT, Side(0)],
        Fixed(datetime.date(2026, 11, 23), Decimal("0.30")),
    ],
    ids=repr,
)
def test_values_keep_their_type(value: object, spider: ShopSpider) -> None:
    """Tuples, sets, datetimes, bytes, Items, dataclasses and named tuples come back as such, however deep."""
    found = kept(value, spider)
    assert found == value
    assert repr(found) == repr(value)


def test_records_come_back_as_they_were_and_none_of_their_code_runs(spider: ShopSpider) -> None:
    """Neither constructor nor `__post_init__` is called with what a message holds; fields that they made are kept."""
    value = Counted(3, 4)
    value.later.append(5)
    Counted.made.clear()
    assert kept(value, spider) == value
    assert Counted.made == []


def test_fields_that_a_class_was_given_since_have_their_defaults(spider: ShopSpider) -> None:
    """A record that was stored by an older version of the class is read; one with a field too many is not."""
    for fields, wanted in (({"x": 1}, Point(1)), ({"x": 1, "gone": 2}, None), ({}, None)):
        record = msgpack.ExtType(5, msgpack.packb([__name__, "Point", fields]))
        body = msgpack.packb((URL, 0, {"meta": {"value": record}}))
        if wanted is None:
            with pytest.raises(ValueError, match="Point"):
                decode_request(body, spider)
        else:
            assert decode_request(body, spider).meta["value"] == wanted


def test_numbers_of_numpy_come_back_as_pythons(spider: ShopSpider) -> None:
    """They are equal, and no process needs numpy to read them."""
    found = kept([np.int64(5), np.float32(0.5), np.float64(2.5), np.bool_(True)], spider)
    assert found == [5, 0.5, 2.5, True]
    assert [type(number) for number in found] == [int, float, float, bool]


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (True, 1),
        (2.0, 2),
        (np.int64(-3), -3),
        (np.uint8(4), 4),
        (np.bool_(True), 1),
        (Step.FIRST, 1),
        (np.float32(7), 7),
    ],
    ids=repr,
)
def test_whole_numbers_of_any_kind_are_priorities(given: Any, wanted: int, spider: ShopSpider) -> None:
    """What Scrapy lets pass, or is set later, is an int before it travels: others of its batch must not suffer."""
    request = Request(URL)
    request.priority = given
    links = Links([URL], priority=given)
    with_meta = Links([URL], priority=given, meta={"a": 1})
    encoded = [links_encoder(batch, 0)(url_key(URL), URL) for batch in (links, with_meta)]
    for url in (stored(request, spider), *encoded):
        [arrived] = decode_batch(encode_batch([url]))
        found = decode_request(arrived.body, spider).priority
        assert (arrived.priority, found) == (wanted, wanted)
        assert (type(arrived.priority), type(found)) == (int, int)


@pytest.mark.parametrize("meta", [None, {"a": 1, "bigcrawl_found": [1, "192.0.2.1"]}])
@pytest.mark.parametrize("priority", [0, -3])
def test_link_comes_back_with_its_origin(meta: dict[str, Any] | None, priority: int, spider: ShopSpider) -> None:
    """And not with that of its page, from which its meta may be copied."""
    links = Links([URL], meta=meta, priority=priority)
    origins = NO_ORIGIN, LinkOrigin("http://b.example/"), LinkOrigin("http://b.example/", 1_800_000_000, "192.0.2.7")
    for origin in (*origins, LinkOrigin("", 1_800_000_000, "")):
        request = decode_request(links_encoder(links, 3, origin=origin)(url_key(URL), URL).body, spider)
        assert request.meta.get(PARENT, "") == origin.page
        assert request.meta.get(FOUND) == ([origin.time_s, origin.address] if origin.time_s else None)
        assert (request.url, request.priority, request.meta["depth"]) == (URL, priority, 3)
    long = LinkOrigin("http://b.example/" + "x" * PARENT_BYTES_MAX, 1_800_000_000, "192.0.2.7")
    request = decode_request(links_encoder(links, 3, origin=long)(url_key(URL), URL).body, spider)
    assert (request.meta.get(PARENT, ""), request.meta[FOUND]) == ("", [1_800_000_000, "192.0.2.7"])
    found: dict[str, Any] = {}
    record_origin(found, long)
    assert found == {FOUND: [1_800_000_000, "192.0.2.7"]}, "a request from a callback carries no long page either"


@pytest.mark.parametrize("given", [0.5, "1", None, float("nan"), float("inf"), np.float64(1.5), Decimal(1)], ids=repr)
def test_any_other_priority_is_refused_where_it_is_given(given: Any, spider: ShopSpider) -> None:
    """The error names the request and the value."""
    request = Request(URL)
    request.priority = given
    with pytest.raises(RequestNotStorableError, match="priority") as caught:
        stored(request, spider)
    assert URL in str(caught.value)
    assert repr(given) in str(caught.value)
    with pytest.raises(ContractError, match="priority") as refused:
        Links([URL], priority=given)
    assert URL in str(refused.value)
    assert repr(given) in str(refused.value)


def test_callback_that_is_no_method_is_told_what_to_write(spider: ShopSpider) -> None:
    """A lambda and a nested function live in one process alone; a method goes by its name."""

    def inline(response: Any) -> None: ...

    functions: tuple[Any, ...] = (lambda response: None, inline)
    for function in functions:
        for field_name in ("callback", "errback"):
            with pytest.raises(RequestNotStorableError) as caught:
                stored(Request(URL, **{field_name: function}), spider)
            assert f"{field_name}=self." in str(caught.value)
            assert "cb_kwargs" in str(caught.value)


def test_subclasses_of_plain_types_come_back_plain(spider: ShopSpider) -> None:
    """A subclass of str or dict is stored as what it is a subclass of."""

    class Word(str):
        __slots__ = ()

    class Table(dict[str, int]):
        pass

    assert round_trip(Request(URL, cb_kwargs={Word("a"): 1}), spider).cb_kwargs == {"a": 1}
    found = kept([Word("a"), Table(b=1)], spider)
    assert found == ["a", {"b": 1}]
    assert [type(inner) for inner in found] == [str, dict]


class _Local:
    pass


def _holding_itself() -> list[Any]:
    ring: list[Any] = []
    ring.append(ring)
    return ring


@pytest.mark.parametrize(
    ("attributes", "key_path"),
    [
        ({"meta": {"shelf": {"files": [1, io.StringIO()]}}}, "meta['shelf']['files'][1]"),
        ({"meta": {"a": ("b", {"c": _Local()})}}, "meta['a'][1]['c']"),
        ({"cb_kwargs": {"spider": ShopSpider()}}, "cb_kwargs['spider']"),
        ({"cb_kwargs": {"many": 1 << 64}}, "cb_kwargs['many']"),
        ({"meta": {"text": "\ud800"}}, "meta['text']"),
        ({"meta": {"basket": Basket(goods=[_Local()])}}, "meta['basket']['goods'][0]"),
        ({"meta": {"kind": Point}}, "meta['kind']"),
        ({"cookies": {"name": _Local()}}, "cookies['name']"),
        ({"meta": {"ring": _holding_itself()}}, "meta['ring'][0][0]"),
        ({"callback": lambda response: None}, "callback"),
        ({"errback": print}, "errback"),
        ({"meta": {"kind": Inner.Kind.HARD}}, "meta['kind']"),
        ({"cb_kwargs": {7: "no name"}}, "cb_kwargs"),
        ({"meta": {"depth": "deep"}}, "meta['depth']"),
        ({"cookies": "a=b"}, "cookies"),
        ({"cookies": [{"name": "a"}]}, "cookies"),
        ({"cookies": {"a": Decimal(1)}}, "cookies['a']"),
        ({"cookies": [{"name": "a", "value": ("b",)}]}, "cookies['a']"),
        ({"body": bytes(4 << 20)}, "the whole"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_stored_is_named(attributes: dict[str, Any], key_path: str, spider: ShopSpider) -> None:
    """The error says which request, and the path of keys to what is wrong with it."""
    with pytest.raises(RequestNotStorableError) as caught:
        encode_request(Request(URL, **attributes), spider, key_of=request_key, checked=True, url_bytes_max=8192)
    assert caught.value.url == URL
    assert caught.value.key_path.startswith(key_path)
    assert str(caught.value).startswith(f"request {URL} cannot be stored: {key_path}")
    assert len(str(caught.value)) < 400


def test_url_that_is_none_is_refused(spider: ShopSpider) -> None:
    """Other schemes and longer URLs are refused with their reason."""
    for url, reason in (("ftp://a.example/", "scheme"), (f"http://a.example/{'x' * 100}", "too-long")):
        with pytest.raises(UrlError) as caught:
            encode_request(Request(url), spider, key_of=request_key, checked=True, url_bytes_max=64)
        assert caught.value.reason == reason


def test_key_and_host_are_the_canonical_urls(spider: ShopSpider) -> None:
    """Spellings of one URL share a key; the request goes out as Scrapy spelt it; method and body join in."""
    plain = stored(Request("http://A.example:80/x/../y#z"), spider)
    assert (plain.key, plain.host) == (url_key("http://a.example/y"), "a.example")
    assert decode_request(plain.body, spider).url == "http://a.example:80/x/../y#z"
    keys = {
        stored(Request("http://a.example/y", method=method, body=body), spider).key
        for method, body in (("GET", b""), ("get", b""), ("GET", b"x"), ("POST", b""), ("POST", b"x"))
    }
    assert len(keys) == 4
    assert plain.key in keys


def test_flags_say_whether_it_is_seen_checked(spider: ShopSpider) -> None:
    """`checked` alone decides, whatever the request says; only the order's priority is clamped."""
    request = Request(URL, dont_filter=True, priority=1 << 40)
    checked, _ = encode_request(request, spider, key_of=request_key, checked=True, url_bytes_max=8192)
    unchecked, _ = encode_request(request, spider, key_of=request_key, checked=False, url_bytes_max=8192)
    assert (checked.flags, unchecked.flags) == (0, UNCHECKED)
    assert checked.priority == (1 << 19) - 1
    assert decode_request(checked.body, spider).priority == 1 << 40
    low, _ = encode_request(
        request.replace(priority=-(1 << 40)), spider, key_of=request_key, checked=True, url_bytes_max=8192
    )
    assert low.priority == -checked.priority


def test_what_the_downloader_left_in_meta_is_not_stored(spider: ShopSpider) -> None:
    """The latency of another fetch does not travel with a redirected request; its slot does, as in Scrapy."""
    request = Request(URL, meta={"download_slot": "a", "download_latency": 0.5, "depth": 2, "mine": 1})
    assert round_trip(request, spider).meta == {"download_slot": "a", "depth": 2, "mine": 1}


def test_links_are_requests_in_little(spider: ShopSpider) -> None:
    """A link of a batch is a GET of the spider's `parse`, or of what the batch names; its text is short."""
    plain = links_encoder(Links([]), depth=3)(url_key(URL), URL)
    assert (plain.key, plain.host) == (url_key(URL), "a.example")
    assert len(plain.body) <= len(URL) + 5
    assert decode_body(plain.body) == (URL, 3, None)
    found = decode_request(plain.body, spider)
    assert (found.url, found.method, found.callback, found.meta["depth"]) == (URL, "GET", None, 3)

    links = Links([], callback=spider.parse_page, errback="failed", priority=2, cb_kwargs={"a": (1,)}, meta={"b": {2}})
    rich = links_encoder(links, depth=1)(url_key(URL), URL)
    found = decode_request(rich.body, spider)
    assert (found.callback, found.errback) == (spider.parse_page, spider.failed)
    assert (found.cb_kwargs, found.meta["b"], found.meta["depth"], rich.priority) == ({"a": (1,)}, {2}, 1, 2)


@pytest.mark.parametrize("fields", [{}, {"priority": 7}, {"callback": "parse_page"}, {"meta": {"a": 1, PARENT: "old"}}])
@pytest.mark.parametrize("parent", ["", "http://b.example/page", "http://b.example/" + 1_024 * "x"])
def test_a_link_says_on_which_page_it_was_found(spider: ShopSpider, fields: dict[str, Any], parent: str) -> None:
    """Unless that is not noted, or too long: it is stored with each link of the page."""
    encoded = links_encoder(Links([], **fields), depth=3, origin=LinkOrigin(parent))(url_key(URL), URL)
    found = decode_request(encoded.body, spider)
    assert found.meta.get(PARENT) == (parent if 0 < len(parent) < 1_024 else None)
    assert (found.url, found.priority, found.meta["depth"]) == (URL, fields.get("priority", 0), 3)
    assert found.meta["verbatim_url"]


@pytest.mark.parametrize("fields", [{}, {"callback": "parse_page"}, {"meta": {"a": 1}}])
@pytest.mark.parametrize("priority", [7, -3, 1 << 30])
def test_priority_of_links_reaches_the_callback(spider: ShopSpider, fields: dict[str, Any], priority: int) -> None:
    """So that a redirect has it too, whatever the queue made of the URL's priority meanwhile."""
    queued = links_encoder(Links([], priority=priority, **fields), depth=1)(url_key(URL), URL)
    taken = unpack_member(moved_member(unpack_member(pack_member(1, queued)), -1))
    request = decode_request(taken.body, spider)
    assert (request.url, request.priority, request.meta["depth"]) == (URL, priority, 1)
    assert look_at_body(taken.body)[:3] == (URL, not fields, False)
    assert look_at_address(taken.body) == (URL if not fields else canonicalize(URL), 1)
    redirect = request.replace(url=URL + "&c")
    assert stored(redirect, spider).priority == max(-(1 << 19) + 1, min((1 << 19) - 1, priority))


def test_link_that_cannot_be_stored_is_named(spider: ShopSpider) -> None:
    """A batch's callback must be a method, and its meta storable, as a request's."""
    for fields, key_path in (
        ({"callback": lambda response: None}, "callback"),
        ({"meta": {"a": [_Local()]}}, "meta['a'][0]"),
    ):
        with pytest.raises(RequestNotStorableError) as caught:
            links_encoder(Links([URL], **fields), depth=0)
        assert caught.value.key_path == key_path


def test_body_is_looked_at_without_making_anything_of_it(spider: ShopSpider) -> None:
    """URL and errback can be told of a body whose values nobody here knows."""
    odd = msgpack.packb((URL, 0, {"errback": "failed", "meta": {"x": msgpack.ExtType(99, b"")}}))
    assert look_at_body(odd) == (URL, False, True, ("failed",))
    assert look_at_body(stored(Request(URL), spider).body)[:3] == (URL, False, False)
    assert look_at_body(links_encoder(Links([]), 0)(url_key(URL), URL).body)[:3] == (URL, True, False)
    with pytest.raises(ValueError, match="unknown extension type 99"):
        decode_request(odd, spider)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("subprocess", "Popen"),
        ("os", "system"),
        ("not_imported_by_anybody", "Thing"),
        (__name__, "ShopSpider"),
        (__name__, "Point.__init__"),
    ],
)
def test_message_can_make_only_records(module: str, name: str, spider: ShopSpider) -> None:
    """No message makes anything be called but an Item, dataclass or named tuple that is imported already."""
    record = msgpack.ExtType(5, msgpack.packb([module, name, {}]))
    body = msgpack.packb((URL, 0, {"meta": {"value": record}}))
    with pytest.raises(ValueError, match="is not among the records that this spider uses"):
        decode_request(body, spider)


@pytest.mark.parametrize("name", ["subprocess.Popen", "antigravity.Request", f"{__name__}.Point", "Request"])
def test_message_names_no_class_but_an_imported_request(name: str, spider: ShopSpider) -> None:
    """Neither as the class of the request itself, nor of one among its values; nothing is imported for it."""
    inner = msgpack.ExtType(13, msgpack.packb({"url": URL, "_class": name}))
    for payload in ({"_class": name, "meta": {}}, {"meta": {"later": inner}}):
        with pytest.raises(ValueError, match="is not among the requests that this spider uses"):
            decode_request(msgpack.packb((URL, 0, payload)), spider)
    assert "antigravity" not in sys.modules


def test_class_of_a_request_that_no_other_node_finds_is_refused(spider: ShopSpider) -> None:
    """It is refused where it is made, and not where it is read."""

    class Own(Request):
        pass

    with pytest.raises(RequestNotStorableError, match=r"its class .* move the class to the top level"):
        stored(Own(URL), spider)


def test_callback_that_is_gone_is_an_error(spider: ShopSpider) -> None:
    """A spider that has lost the method cannot run the request, and says which."""
    body = stored(Request(URL, spider.parse_page), spider).body
    with pytest.raises(ValueError, match="parse_page"):
        decode_request(body, Spider("other"))


def test_unknown_versions_are_refused() -> None:
    """A batch of another format version, or of none, is not read."""
    data = encode_batch([QueuedUrl(1, "a.example", 0, 0, b"")])
    for wrong in (bytes((data[0] + 1,)) + data[1:], b"", data[1:], data[:-3]):
        with pytest.raises(BatchFormatError):
            decode_batch(wrong)


def test_order_is_priority_then_arrival_and_exact() -> None:
    """A lower order is fetched first: higher priority, then lower sequence number; doubles hold it."""
    ranked = [(9, 5), (9, 6), (0, 0), (0, (1 << 33) - 1), (-9, 1)]
    orders = [order_of(priority, seq) for priority, seq in ranked]
    assert orders == sorted(orders)
    assert len(set(orders)) == len(orders)
    highest = (1 << 19) - 1
    for priority in (highest, -highest):
        order = order_of(priority, (1 << 33) - 1)
        assert int(float(order)) == order
        assert abs(order) < 1 << 53


def test_member_survives_any_body() -> None:
    """The sequence number stands before the first colon, whatever the body holds."""
    url = QueuedUrl((1 << 64) - 1, "a.example", -3, UNCHECKED, b"12:34\n\x00:")
    member = unpack_member(pack_member(1 << 40, url))
    assert member == Member(1 << 40, url.key, -3, UNCHECKED, 0, url.body)
