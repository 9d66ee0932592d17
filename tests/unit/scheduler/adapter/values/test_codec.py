"""What a stored value may be, and what a message may do to the process that reads it."""

from __future__ import annotations

import dataclasses
import logging
import os
import shutil
import subprocess
import sys
from http import HTTPStatus
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

import attrs
import msgpack
import pytest
from scrapy import Field, FormRequest, Item, Request, Spider

from bigcrawl.config import read_config
from bigcrawl.exceptions import ConfigError
from bigcrawl.scheduler.adapter.values import known_names
from bigcrawl.scheduler.adapter.values.codec import PLAIN, ValueCodec
from bigcrawl.scheduler.adapter.values.taught_types import _taught_by_packages as taught_by_packages
from bigcrawl.scheduler.adapter.values.taught_types import taught_types
from bigcrawl.scheduler.adapter.values.vocabulary import values_of
from bigcrawl.spiders.broad import BroadSpider


@dataclasses.dataclass
class Here:
    name: str = ""


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> type:
    """A dataclass of a module that was imported when the crawl had begun."""
    monkeypatch.setattr(known_names, "_modules_of_the_start", frozenset())
    known_names.record_modules()
    module = ModuleType("late_module")
    late = dataclasses.make_dataclass("Late", ["name"])
    late.__module__ = module.__name__
    module.Late = late  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return late


def test_class_that_another_node_may_not_have_imported_is_refused(late: type) -> None:
    """Here it could be read again; after kill -9, by the next process, it could not, and the URL would be lost."""
    with pytest.raises(TypeError, match="late_module was imported after the spider was opened; import it"):
        PLAIN.pack(late("x"))
    assert PLAIN.unpack(PLAIN.pack(Here("x"))) == Here("x")
    known_names.record_modules()
    assert PLAIN.unpack(PLAIN.pack(late("x"))) == late("x")


@pytest.mark.parametrize(
    ("code", "module", "name", "content"),
    [
        (5, "decimal", "Decimal", {}),
        (5, "enum", "Enum", {}),
        (10, __name__, "Here", "name"),
        (5, "collections", "OrderedDict", {}),
        (10, "enum", "Flag", 1 << 70),
        (10, "signal", "Signals", "SIGNONE"),
        (10, "signal", "Signals", 9),
        (5, __name__, "Here", {"name": "x", "__class__": "y"}),
        (5, __name__, "Here", ["x"]),
        (5, __name__, "Here.name", {}),
    ],
)
def test_message_makes_nothing_but_records_and_members(code: int, module: str, name: str, content: object) -> None:
    """Of any other class, and of fields and members that a class has not, nothing is made."""
    with pytest.raises((ValueError, OverflowError)):
        PLAIN.unpack(msgpack.packb(msgpack.ExtType(code, msgpack.packb([module, name, content]))))


def test_message_imports_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even a module that is there, nor what a module would import for whoever asks."""
    asked: list[str] = []
    module = ModuleType("lazy_module")
    module.__getattr__ = asked.append  # type: ignore[method-assign]
    monkeypatch.setitem(sys.modules, "lazy_module", module)
    with pytest.raises(ValueError, match="lazy_module"):
        PLAIN.unpack(msgpack.packb(msgpack.ExtType(5, msgpack.packb(["lazy_module", "Thing", {}]))))
    assert asked == []
    assert "antigravity" not in sys.modules
    with pytest.raises(ValueError, match="antigravity"):
        PLAIN.unpack(msgpack.packb(msgpack.ExtType(5, msgpack.packb(["antigravity", "Thing", {}]))))
    assert "antigravity" not in sys.modules


class Listing(Item):
    name = Field()


@attrs.frozen
class Offer:
    name: str
    tags: list[str] = attrs.field(factory=list, kw_only=True)
    checked: int = attrs.field(default=1, converter=int)


@attrs.define(slots=False)
class Loose:
    name: str = "x"


def helper() -> None:
    """A function at the top of its module."""


class ValueSpider(Spider):
    name = "values"

    def parse_later(self, response: Any) -> None:
        """Names a callback."""


def kept(value: object, **how: Any) -> Any:
    values = ValueCodec(**how)
    return values.unpack(values.pack(value))


@pytest.mark.parametrize("value", [Offer("x", tags=["a"]), Loose(), Listing(name="x"), Here("x")])
def test_records_of_each_kind_come_back_equal(value: object) -> None:
    """Items, dataclasses and attrs, frozen and slotted ones too."""
    found = kept([value])[0]
    assert found == value
    assert type(found) is type(value)


def test_field_that_attrs_has_got_since_has_its_default() -> None:
    """By value or by factory; one without a default, and one that the class has lost, are errors."""
    record = ["tests.unit.scheduler.adapter.values.test_codec", "Offer", {"name": "x"}]

    def read() -> Any:
        return PLAIN.unpack(msgpack.packb(msgpack.ExtType(5, msgpack.packb(record))))

    assert read() == Offer("x")
    record[2] = {"name": "x", "gone": 1}
    with pytest.raises(ValueError, match="has changed since the request was stored: it lacks 'gone'"):
        read()
    record[2] = {}
    with pytest.raises(ValueError, match="has changed since: 'name'"):
        read()


def test_models_of_pydantic_come_back_as_they_were() -> None:
    """With the names that were set, extra and private values; no validator runs."""
    pydantic = pytest.importorskip("pydantic", reason="pydantic is not installed")
    ran: list[str] = []

    class Model(pydantic.BaseModel):  # type: ignore[name-defined, misc, unused-ignore]
        model_config = pydantic.ConfigDict(extra="allow")
        name: str
        price: float = 0.5
        _seen: int = pydantic.PrivateAttr(default=0)

        @pydantic.model_validator(mode="after")
        def note(self) -> Any:
            ran.append(self.name)
            return self

    Model.__qualname__ = "Model"
    module: Any = sys.modules[__name__]
    module.Model = Model
    try:
        model = Model(name="x", colour="red")
        model._seen = 3
        ran.clear()
        found = kept(model)
    finally:
        del module.Model
    assert (found, found._seen, found.model_extra) == (model, 3, {"colour": "red"})
    assert found.model_dump(exclude_unset=True) == {"name": "x", "colour": "red"}
    assert ran == []


@pytest.mark.parametrize("path", [Path("/a/b"), PurePosixPath("a"), PureWindowsPath("C:/a")])
def test_paths_keep_their_flavour(path: PurePath) -> None:
    """Also beside others."""
    assert kept({"path": [path]}) == {"path": [path]}


def test_classes_and_functions_are_named_within_packages_only() -> None:
    """What is not in the list is neither stored nor read, whatever Redis holds; a part of a name is no package."""
    packages = ["tests.unit"]
    assert kept([Here, helper, Offer], packages=packages) == [Here, helper, Offer]
    for other in (["tests.uni"], ["test"], []):
        with pytest.raises(TypeError, match=r"BIGCRAWL_STORED_PACKAGES does not list tests\.unit"):
            ValueCodec(packages=other).pack([helper])
        with pytest.raises(ValueError, match="is no class or function of BIGCRAWL_STORED_PACKAGES"):
            ValueCodec(packages=other).unpack(ValueCodec(packages=packages).pack([helper]))
    for module, name in (("os", "system"), ("subprocess", "Popen"), (__name__, "pytest"), (__name__, "Here.name")):
        with pytest.raises(ValueError, match="is no class or function of BIGCRAWL_STORED_PACKAGES"):
            ValueCodec(packages=packages).unpack(msgpack.packb(msgpack.ExtType(12, msgpack.packb([module, name]))))
    with pytest.raises(TypeError, match="move the function to the top level"):
        ValueCodec(packages=packages).pack(lambda: None)


def test_packages_are_those_of_the_project() -> None:
    """Of the spider and its neighbours, and never bigcrawl's own."""
    config = read_config({})
    assert "packages=['tests']" in repr(values_of(config, ValueSpider()))
    named = read_config({"BIGCRAWL_STORED_PACKAGES": "shop, web_poet"})
    assert "packages=['shop', 'web_poet']" in repr(values_of(named, ValueSpider()))
    assert "packages=[]" in repr(values_of(read_config({"BIGCRAWL_STORED_PACKAGES": "[]"}), ValueSpider()))
    assert "packages=[]" in repr(values_of(config, BroadSpider()))


def test_requests_among_values_keep_class_and_callback() -> None:
    """A callback must be a method of the spider that reads it."""
    spider = ValueSpider()
    later = FormRequest("http://a.example/", spider.parse_later, formdata={"a": "1"}, meta={"path": Path("x")})
    found = kept({"later": [later]}, spider=spider)["later"][0]
    assert type(found) is FormRequest
    assert found.to_dict(spider=spider) == later.to_dict(spider=spider)
    with pytest.raises(ValueError, match="not an instance method"):
        kept(Request("http://a.example/", print), spider=spider)
    with pytest.raises(ValueError, match="parse_later"):
        ValueCodec(Spider(name="other")).unpack(ValueCodec(spider).pack(later))


@attrs.frozen
class Foreign:
    """A record of a module that the packages do not list."""


class ForeignRequest(Request):
    """A request of such a module."""


def message(code: int, *fields: object) -> bytes:
    """What a writer to Redis may send."""
    return msgpack.packb(msgpack.ExtType(code, msgpack.packb(fields)))


@pytest.fixture
def project(monkeypatch: pytest.MonkeyPatch) -> ValueCodec:
    """Values of a project whose module has imported much, and defines a record and a request with a class inside."""
    module = ModuleType("project_of_test.items")

    @dataclasses.dataclass
    class Own:
        name: str = ""

    class OwnRequest(Request):
        """A request."""

        class Inner:
            """Not at the top."""

    for own in (Own, OwnRequest):
        own.__module__, own.__qualname__ = module.__name__, own.__name__
    OwnRequest.Inner.__module__, OwnRequest.Inner.__qualname__ = module.__name__, "OwnRequest.Inner"
    names = {
        "Own": Own,
        "OwnRequest": OwnRequest,
        "Popen": subprocess.Popen,
        "rmtree": shutil.rmtree,
        "os": os,
        "Foreign": Foreign,
        "ForeignRequest": ForeignRequest,
        "Renamed": Own,
    }
    for name, value in names.items():
        setattr(module, name, value)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(known_names, "_modules_of_the_start", frozenset())
    return ValueCodec(HelpedSpider(), ["project_of_test"])


class HelpedSpider(Spider):
    name = "helped"
    clean = shutil.rmtree
    shell = staticmethod(os.system)
    kind = subprocess.Popen

    def parse_later(self, response: Any) -> None:
        """Names a callback."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.log_it = logging.getLogger().critical


@pytest.mark.parametrize(
    ("code", "name", "fields"),
    [
        (12, "Popen", ()),
        (12, "rmtree", ()),
        (12, "os", ()),
        (12, "os.system", ()),
        (12, "Renamed", ()),
        (12, "Foreign", ()),
        (12, "OwnRequest.Inner", ()),
        (5, "Foreign", ({},)),
        (5, "Renamed", ({},)),
        (5, "Popen", ({},)),
    ],
)
def test_what_a_module_of_the_project_has_imported_is_not_its_own(
    project: ValueCodec, code: int, name: str, fields: tuple[object, ...]
) -> None:
    """Nor is it found by another name, or by the module that it is from."""
    for module in ("project_of_test.items", "project_of_test.items.os", __name__, "subprocess", "shutil"):
        with pytest.raises(ValueError, match=f"{module}.{name} is n|class {module}.{name} is not among"):
            project.unpack(message(code, module, name, *fields))


def test_project_s_own_are_found(project: ValueCodec) -> None:
    """And Scrapy's requests, and members and named tuples of Python, whose objects can do nothing."""
    own: Any = sys.modules["project_of_test.items"]
    for value in (own.Own("x"), own.Own, HTTPStatus.OK, urlsplit("http://a.example/")):
        assert project.unpack(project.pack(value)) == value
    later = HelpedSpider().parse_later
    for kind in (own.OwnRequest, FormRequest, Request):
        assert type(project.unpack(project.pack(kind("http://a.example/", later)))) is kind


@pytest.mark.parametrize(
    "value", [Foreign(), Foreign, shutil.rmtree, subprocess.Popen, ForeignRequest("http://a.example/")]
)
def test_what_the_packages_do_not_list_is_not_stored(project: ValueCodec, value: object) -> None:
    """The error says which one is missing."""
    with pytest.raises(TypeError, match=r"BIGCRAWL_STORED_PACKAGES does not list (tests|shutil|subprocess)"):
        project.pack([value])


@pytest.mark.parametrize(
    "path", ["project_of_test.items.ForeignRequest", f"{__name__}.ForeignRequest", "subprocess.Popen"]
)
def test_request_of_another_package_is_not_made(project: ValueCodec, path: str) -> None:
    """Its constructor would run."""
    with pytest.raises(ValueError, match="is not among the requests that this spider uses"):
        project.unpack(msgpack.packb(msgpack.ExtType(13, msgpack.packb({"_class": path, "url": "http://a.example/"}))))


@pytest.mark.parametrize("name", ["clean", "shell", "kind", "log_it", "name", "settings", "crawler"])
def test_callback_is_a_method_that_spider_or_base_defines(project: ValueCodec, name: str) -> None:
    """And nothing else that is found at the spider."""
    fields = {"url": "http://a.example/", "callback": name}
    for stored in (fields, {"url": fields["url"], "errback": name}):
        with pytest.raises(ValueError, match=f"{name}"):
            project.unpack(msgpack.packb(msgpack.ExtType(13, msgpack.packb(stored))))
    spider = HelpedSpider()
    if name in {"clean", "log_it"}:
        with pytest.raises(ValueError, match="is not a method of the spider"):
            ValueCodec(spider, ["project_of_test"]).pack(Request("http://a.example/", getattr(spider, name)))


class Price:
    """A type that nothing knows."""

    def __init__(self, cents: int) -> None:
        self.cents = cents


PRICE = (lambda price: {"cents": price.cents}, lambda plain: Price(plain["cents"]))


def test_type_that_is_taught_is_stored_by_its_functions() -> None:
    """A message names the class, and only the functions of the list are called."""
    taught = taught_types([f"{__name__}.Price={__name__}.PRICE"])
    assert kept([Price(990)], types=taught)[0].cents == 990
    with pytest.raises(TypeError, match="cannot store Price"):
        PLAIN.pack(Price(1))
    with pytest.raises(ValueError, match=r"Price cannot be read: BIGCRAWL_STORED_TYPES does not have it"):
        PLAIN.unpack(ValueCodec(types=taught).pack(Price(1)))


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("shop.Price", "must be a class, =, and a pair"),
        ("Price=shop.PRICE", "must be a class, =, and a pair"),
        ("shop.Price=no_such_module.PRICE", "which cannot be imported"),
        (f"shop.Price={__name__}.helper", "a function; must be a tuple of two functions"),
        (f"shop.Price={__name__}.Price", "a type; must be a tuple of two functions"),
    ],
)
def test_entry_that_names_no_pair_is_a_wrong_setting(entry: str, said: str) -> None:
    """At the start, and with what it must be."""
    with pytest.raises(ConfigError, match=said):
        taught_types([entry])


def test_packages_teach_types_by_entry_points(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As any distribution that is installed; the setting goes before it."""
    info = tmp_path / "shop-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shop\nVersion: 1.0\n")
    point = f"{__name__}.Price = {__name__}:PRICE"
    (info / "entry_points.txt").write_text(f"[bigcrawl.stored_types]\n{point}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    uncached = taught_by_packages.__wrapped__
    monkeypatch.setattr("bigcrawl.scheduler.adapter.values.taught_types._taught_by_packages", uncached)
    assert kept(Price(3), types=taught_types([])).cents == 3
    assert taught_types([f"{__name__}.Price=tests.unit.scheduler.adapter.values.test_codec.OTHER"])[
        f"{__name__}.Price"
    ] == tuple(OTHER)


OTHER = (lambda _: 0, lambda _: None)


def test_methods_of_playwright_are_known_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their class is looked up by name, and its module is asked for only where such an object is read."""
    module = ModuleType("scrapy_playwright.page")

    class PageMethod:
        def __init__(self, method: Any, *args: Any, **kwargs: Any) -> None:
            self.method, self.args, self.kwargs = method, args, kwargs

    PageMethod.__module__, PageMethod.__qualname__ = module.__name__, "PageMethod"
    module.PageMethod = PageMethod  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "scrapy_playwright", ModuleType("scrapy_playwright"))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    found = kept([PageMethod("screenshot", 1, path=Path("a.png"))], types=taught_types([]))[0]
    assert (type(found), found.method, found.args) == (PageMethod, "screenshot", (1,))
    assert found.kwargs == {"path": Path("a.png")}


def test_culprit_is_named_with_its_type() -> None:
    """The first one, by key path."""
    assert PLAIN.find_culprit({"meta": {"a": [1, Price(1)]}}, "") == (
        "meta['a'][1]",
        "holds a Price (cannot store Price)",
        "Price",
    )
    assert PLAIN.find_culprit({"meta": {"a": 1}}, "") is None
