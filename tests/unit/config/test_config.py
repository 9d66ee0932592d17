"""Settings: read once, checked, in milliseconds; what is wrong is said with what would be right."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from redis.asyncio.connection import parse_url
from scrapy.settings import Settings

from bigcrawl.config import pages, read_config
from bigcrawl.config.values import PREFIX
from bigcrawl.default_settings import BY_NAME, SETTINGS
from bigcrawl.exceptions import ConfigError
from tests.support.running.tables import each

if TYPE_CHECKING:
    from bigcrawl.table_rows import Setting

BOUNDED = [setting for setting in SETTINGS if setting.low is not None]
NUMBERS = [setting for setting in SETTINGS if setting.type in (int, float)]


def name_of(setting: Setting) -> str:
    return setting.name


def refusal(**settings: object) -> str:
    with pytest.raises(ConfigError) as caught:
        read_config(settings)
    return str(caught.value)


def test_nothing_set_gives_the_defaults() -> None:
    """Without any setting the table's defaults hold, times in milliseconds."""
    found = read_config({})
    assert found.crawl.name == "crawl"
    assert found.crawl.redis_url is None
    assert found.crawl.partitions == 256
    assert found.crawl.close_when_empty
    assert found.crawl.crawl_dir == Path("state/crawl").absolute()
    assert found.frontier.durable_ms == 10_000
    assert found.politeness.host_delay_ms == 1_000
    assert found.politeness.obey_robots
    assert not found.politeness.allow_private_addresses


@each("setting", SETTINGS, ids=name_of)
def test_a_default_is_within_its_own_bounds(setting: Setting) -> None:
    """What the table gives as default would be accepted from a user."""
    if setting.default is not None:
        read_config({setting.name: setting.default})


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("BIGCRAWL_HOST_DELAYS", "BIGCRAWL_HOST_DELAY"),
        ("BIGCRAWL_PARTITION", "BIGCRAWL_PARTITIONS"),
        ("BIGCRAWL_REDIS", "BIGCRAWL_REDIS_URL"),
        ("BIGCRAWL_STATEDIR", "BIGCRAWL_STATE_DIR"),
        ("BIGCRAWL_ROBOT", "BIGCRAWL_ROBOTS"),
    ],
)
def test_an_unknown_name_is_refused_with_the_one_that_was_meant(wrong: str, right: str) -> None:
    """A name nobody reads stops the start and suggests the nearest one."""
    assert refusal(**{wrong: 1}) == f"unknown setting {wrong}; did you mean {right}?"


def test_a_name_like_no_other_points_to_the_list() -> None:
    """Where no setting is near, the page that lists them is named."""
    assert "docs/settings.md" in refusal(BIGCRAWL_ZZZZZZZZZZZZZZZZ=1)


def test_other_peoples_settings_are_left_alone() -> None:
    """Only names with our prefix are ours to refuse."""
    read_config({"BIGCRAWLER_X": 1, "MY_BIGCRAWL_X": 2, "DOWNLOAD_TIMEOUT": 3})


@each("setting", BOUNDED, ids=name_of)
def test_bounds_are_inclusive_and_kept(setting: Setting) -> None:
    """The lowest and the highest value are accepted, the next beyond is refused with the bounds."""
    assert setting.low is not None
    read_config({setting.name: setting.type(setting.low)})
    message = refusal(**{setting.name: setting.low - 1})
    assert message.startswith(f"{setting.name} is ")
    assert f"{setting.low:g}" in message
    if setting.high is not None:
        read_config({setting.name: setting.type(setting.high)})
        assert f"to {setting.high:g}" in refusal(**{setting.name: setting.high + 1})


@pytest.mark.parametrize("value", ["many", "", "nan", "inf", [1]])
@each("setting", NUMBERS, ids=name_of)
def test_what_is_no_number_is_refused(setting: Setting, value: object) -> None:
    """Text, nothing, and what is not finite are errors that name the setting and give an example."""
    message = refusal(**{setting.name: value})
    assert message.startswith(f"{setting.name} is {value!r}; must be ")
    assert f"e.g. {setting.default}" in message


def test_a_whole_number_is_not_rounded() -> None:
    """Where whole numbers are wanted, a fraction is an error and 4.0 is 4."""
    assert "a whole number" in refusal(BIGCRAWL_PARTITIONS=4.5)
    assert read_config({"BIGCRAWL_PARTITIONS": 4.0}).crawl.partitions == 4


def test_the_command_line_gives_text() -> None:
    """`-s NAME=VALUE` brings strings: numbers and truth values are read from them."""
    settings = {
        "BIGCRAWL_HOST_DELAY": " 2.5 ",
        "BIGCRAWL_PARTITIONS": "8",
        "BIGCRAWL_ALLOW_PRIVATE_ADDRESSES": "yes",
    }
    found = read_config(settings)
    assert found.politeness.host_delay_ms == 2_500
    assert found.crawl.partitions == 8
    assert found.politeness.allow_private_addresses


def test_several_texts_come_as_a_list_or_with_commas() -> None:
    """The command line has no lists; blanks and empty parts are nothing."""
    for value in ("10.1.0.0/16, ::1,", ["10.1.0.0/16", " ::1 "], ("10.1.0.0/16", "::1"), '["10.1.0.0/16", "::1"]'):
        found = read_config({"BIGCRAWL_ALLOW_ADDRESSES": value}).politeness.allow_addresses
        assert [str(network) for network in found] == ["10.1.0.0/16", "::1/128"]
    assert "a list of texts" in refusal(BIGCRAWL_ALLOW_ADDRESSES=5)
    assert "a list of texts" in refusal(BIGCRAWL_ALLOW_ADDRESSES=[5])


def test_a_list_with_commas_in_it_comes_in_a_file(tmp_path: Path) -> None:
    """A pattern may have commas: the text is a file's name, or JSON; where it is neither, the error says so."""
    path = tmp_path / "list, of mine"
    path.write_text("# ours\na.example\nre:/a,b#/  # both\n\n")
    assert read_config({"BIGCRAWL_BLACKLIST": str(path)}).pace.blacklist == ("a.example", "re:/a,b#/")
    assert read_config({"BIGCRAWL_BLACKLIST": '["re:/a,b/"]'}).pace.blacklist == ("re:/a,b/",)
    assert read_config({"BIGCRAWL_BLACKLIST": ""}).pace.blacklist == ()
    assert "a file that cannot be read" in refusal(BIGCRAWL_BLACKLIST="a.example, b.example")
    assert "that in JSON, or the name of a file" in refusal(BIGCRAWL_BLACKLIST='["a.example"')


@pytest.mark.parametrize("text", ["10.1.0.0/33", "example.com", "10.1", "1.2.3.4/x"])
def test_networks_are_checked(text: str) -> None:
    """What is no address and no network is told with what would be one."""
    message = refusal(BIGCRAWL_ALLOW_ADDRESSES=[text])
    assert message.startswith(f"BIGCRAWL_ALLOW_ADDRESSES has {text!r}")
    assert message.endswith("e.g. 10.1.0.0/16")


@pytest.mark.parametrize(
    ("text", "server"),
    [
        ("192.0.2.53", "192.0.2.53:53"),
        ("192.0.2.53:5353", "192.0.2.53:5353"),
        ("2001:db8::53", "[2001:db8::53]:53"),
        ("[2001:db8::53]", "[2001:db8::53]:53"),
        ("[2001:db8::53]:5353", "[2001:db8::53]:5353"),
    ],
)
def test_name_servers_may_have_ports(text: str, server: str) -> None:
    """An address, with a port where it is not 53, as one writes it in URLs."""
    assert read_config({"BIGCRAWL_DNS_SERVERS": text}).dns.servers == (server,)


@pytest.mark.parametrize("text", ["dns.example", "192.0.2.53:0", "192.0.2.53:99999", "192.0.2", "[::1", "::1]:53"])
def test_name_servers_are_checked(text: str) -> None:
    """A name server has no name: who would resolve it?"""
    assert refusal(BIGCRAWL_DNS_SERVERS=text).startswith(f"BIGCRAWL_DNS_SERVERS has {text!r}")


def test_the_cap_of_ttls_is_above_their_floor() -> None:
    """A low cap takes the floor with it."""
    found = read_config({"BIGCRAWL_DNS_TTL_MAX": 5}).dns
    assert (found.ttl_min_ms, found.ttl_max_ms) == (5_000, 5_000)


@pytest.mark.parametrize("value", ["", "2", "perhaps", None, True, "off"])
def test_truth_is_not_guessed(value: object) -> None:
    """A switch is true or false, never on because something stands there."""
    settings = {"BIGCRAWL_ALLOW_PRIVATE_ADDRESSES": value}
    if value in ("", "2", "perhaps"):
        assert "true or false" in refusal(**settings)
    else:
        assert read_config(settings).politeness.allow_private_addresses is (value is True)


def test_robots_are_ignored_by_the_whole_sentence_only() -> None:
    """Nothing short of the full phrase turns robots.txt off."""
    for word in ("ignore", "0", "false", "off", ""):
        assert "ignore-i-own-these-hosts" in refusal(BIGCRAWL_ROBOTS=word)
    assert not read_config({"BIGCRAWL_ROBOTS": "ignore-i-own-these-hosts"}).politeness.obey_robots


@pytest.mark.parametrize("name", ["a/b", "../x", "-a", ".a", "a b", "{a}", "ü", "x" * 101])
@pytest.mark.parametrize("setting", ["BIGCRAWL_CRAWL", "BIGCRAWL_NODE"])
def test_names_that_become_files_and_keys_are_plain(setting: str, name: str) -> None:
    """A crawl's or node's name is letters, digits, dots, dashes and underscores."""
    assert refusal(**{setting: name}).startswith(f"{setting} is {name!r}")


def test_a_crawl_has_a_name() -> None:
    """The empty string names no crawl."""
    assert refusal(BIGCRAWL_CRAWL="").startswith("BIGCRAWL_CRAWL is ''")


def test_an_unset_node_name_is_made_up() -> None:
    """Without a name a node has one all the same, and it is one that would be accepted."""
    name = read_config({"BIGCRAWL_NODE": ""}).crawl.node
    assert read_config({"BIGCRAWL_NODE": name}).crawl.node == name


@pytest.mark.parametrize(
    ("delay", "host_delay", "expected_ms"),
    [
        (None, None, 1_000),
        (0, None, 1_000),
        (3, None, 3_000),
        (0.25, None, 250),
        (3, 0.5, 500),
        ("2", None, 2_000),
    ],
)
def test_a_projects_download_delay_is_taken_over(delay: object, host_delay: object, expected_ms: int) -> None:
    """DOWNLOAD_DELAY stands for the default host delay; BIGCRAWL_HOST_DELAY, once set, decides alone."""
    found = read_config({"DOWNLOAD_DELAY": delay, "BIGCRAWL_HOST_DELAY": host_delay})
    assert found.politeness.host_delay_ms == expected_ms


def test_what_is_in_process_follows_the_concurrency() -> None:
    """Unset, a node holds twice what Scrapy fetches at a time."""
    assert read_config({"CONCURRENT_REQUESTS": 40}).frontier.in_process_max == 120
    assert read_config({"CONCURRENT_REQUESTS": 40, "BIGCRAWL_IN_PROCESS_MAX": 5}).frontier.in_process_max == 5


def test_an_empty_warc_directory_stores_nothing() -> None:
    """The empty string is a choice; unset is the default directory."""
    assert read_config({"BIGCRAWL_WARC_DIR": ""}).crawl.warc_dir is None
    assert read_config({}).crawl.warc_dir == Path("warc").absolute()


def test_scrapys_own_settings_object_is_read() -> None:
    """What Scrapy hands in, its many defaults included, is accepted."""
    assert read_config(Settings({"BIGCRAWL_CRAWL": "mine"})).crawl.name == "mine"


def test_what_was_read_cannot_be_changed() -> None:
    """Configuration is a value."""
    with pytest.raises(FrozenInstanceError):
        read_config({}).crawl.name = "other"  # type: ignore[misc]


def test_the_table_is_in_order() -> None:
    """Names are unique and ours, numbers have bounds and units, choices hold the default."""
    assert len(BY_NAME) == len(SETTINGS)
    for setting in SETTINGS:
        assert setting.name.startswith(PREFIX)
        assert setting.meaning.endswith((".", "-")), setting.name
        assert setting.low is not None or setting.type not in (int, float), setting.name
        has_no_unit = setting.name in ("BIGCRAWL_PARTITIONS", "BIGCRAWL_CAPACITY")
        assert setting.unit or setting.type not in (int, float) or has_no_unit
        assert not setting.choices or setting.default in setting.choices
        assert setting.default is None or type(setting.default) is setting.type, setting.name


def test_pages_at_a_time_go_down_to_their_least_or_stay() -> None:
    """4 unless said otherwise; 0 is all of them, and so it is where Scrapy has no limit."""
    at_once = {"CONCURRENT_REQUESTS": 64}
    pace = read_config(at_once).pace
    assert (pace.fetches_min, pace.fetches_max) == (4, 64)
    pace = read_config({**at_once, "BIGCRAWL_FETCHES_MIN": 0}).pace
    assert (pace.fetches_min, pace.fetches_max) == (64, 64)
    assert read_config({"CONCURRENT_REQUESTS": 0, "BIGCRAWL_IN_PROCESS_MAX": 200}).pace.fetches_max == 200


@pytest.mark.parametrize(
    ("text", "ports"), [("9410", (9410, 9410)), ("9410-9429", (9410, 9429)), ("1 - 65535", (1, 65_535)), ("0", (0, 0))]
)
def test_metrics_have_a_port_or_a_range(text: str, ports: tuple[int, int]) -> None:
    """0 is any port."""
    assert read_config({"BIGCRAWL_METRICS_PORT": text}).metrics.ports == ports


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("BIGCRAWL_METRICS_PORT", text) for text in ("", "x", "-1", "65536", "20-10", "0-5", "1-2-3", "1.5")),
        *(("BIGCRAWL_METRICS_ADDRESS", text) for text in ("", "localhost", "127.0.0.1:80", "*")),
    ],
)
def test_where_metrics_are_served_is_checked(name: str, value: str) -> None:
    """A wrong address or port is an error at the start, which names the setting."""
    with pytest.raises(ConfigError, match=name):
        read_config({name: value})


def test_dashboard_is_on_loopback_and_changes_nothing_by_default() -> None:
    found = read_config({}).dashboard
    assert (found.is_on, found.address, found.token, found.is_guarded) == (False, "127.0.0.1", None, False)


@pytest.mark.parametrize(
    "settings",
    [
        {"BIGCRAWL_DASHBOARD_ADDRESS": "0.0.0.0"},
        {"BIGCRAWL_DASHBOARD_ADDRESS": "10.1.2.3"},
        {"BIGCRAWL_DASHBOARD_ADDRESS": "::"},
        {"BIGCRAWL_DASHBOARD_ORIGIN": "https://crawl.example"},
    ],
)
def test_a_dashboard_that_others_reach_needs_a_token(settings: dict[str, str], tmp_path: Path) -> None:
    """From a setting or a file; one that is short, has a blank or comes twice is refused, and no error shows it."""
    with pytest.raises(ConfigError, match=f"{next(iter(settings))} is .*BIGCRAWL_DASHBOARD_TOKEN_FILE"):
        read_config(settings)
    good, file = "0123456789abcdef", tmp_path / "token"
    file.write_text(f"{good}\n")
    assert read_config({**settings, "BIGCRAWL_DASHBOARD_TOKEN": good}).dashboard.is_guarded
    found = read_config({**settings, "BIGCRAWL_DASHBOARD_TOKEN_FILE": str(file)})
    assert found.dashboard.token == good
    assert good not in repr(found)
    with pytest.raises(ConfigError, match="both set"):
        read_config({**settings, "BIGCRAWL_DASHBOARD_TOKEN": good, "BIGCRAWL_DASHBOARD_TOKEN_FILE": str(file)})
    with pytest.raises(ConfigError, match="cannot be read"):
        read_config({**settings, "BIGCRAWL_DASHBOARD_TOKEN_FILE": str(tmp_path / "none")})
    for bad in ("0123456789abcde", "0123456789 abcdef", "0123456789abcdeä"):
        with pytest.raises(ConfigError, match="at least 16") as raised:
            read_config({**settings, "BIGCRAWL_DASHBOARD_TOKEN": bad})
        assert bad not in str(raised.value)


@pytest.mark.parametrize("origin", ["crawl.example", "https://crawl.example/", "ftp://a", "https://", "https://a:x"])
def test_a_proxys_origin_is_scheme_and_name(origin: str) -> None:
    with pytest.raises(ConfigError, match="BIGCRAWL_DASHBOARD_ORIGIN"):
        read_config({"BIGCRAWL_DASHBOARD_ORIGIN": origin, "BIGCRAWL_DASHBOARD_TOKEN": "0123456789abcdef"})


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("redis://h:1/2", {"host": "h", "port": 1, "db": 2}),
        ("redis://h", {"host": "h"}),
        ("rediss://crawler@h/0?ssl_ca_certs=/ca.pem", {"username": "crawler", "host": "h", "ssl_ca_certs": "/ca.pem"}),
        ("unix:///run/redis.sock?db=1", {"path": "/run/redis.sock", "db": 1}),
    ],
)
def test_the_password_of_redis_may_stand_in_a_file(url: str, parts: dict[str, object], tmp_path: Path) -> None:
    """Whatever characters it has; the newline at its end is not part of it."""
    secret = tmp_path / "password"
    secret.write_text("p@ss/wo:rd#?%41é \n", "utf-8")
    found = read_config({"BIGCRAWL_REDIS_URL": url, "BIGCRAWL_REDIS_PASSWORD_FILE": str(secret)}).crawl.redis_url
    assert found is not None
    assert parse_url(found).items() >= {**parts, "password": "p@ss/wo:rd#?%41é"}.items()


def test_sentinels_get_the_password_before_their_names(tmp_path: Path) -> None:
    """It is the master's, and stands where a password in the URL would."""
    secret = tmp_path / "password"
    secret.write_text("p@ss")
    settings = {"BIGCRAWL_REDIS_URL": "redis+sentinel://a:1,b:2/main/0", "BIGCRAWL_REDIS_PASSWORD_FILE": str(secret)}
    assert read_config(settings).crawl.redis_url == "redis+sentinel://:p%40ss@a:1,b:2/main/0"


def test_a_password_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    """A missing or empty file, a missing URL, two passwords. No message holds a password."""
    secret, empty = tmp_path / "password", tmp_path / "empty"
    secret.write_text("s3cret")
    empty.write_text("\n")

    def said(url: str | None, path: Path) -> str:
        return refusal(BIGCRAWL_REDIS_URL=url, BIGCRAWL_REDIS_PASSWORD_FILE=str(path))

    assert "cannot be read" in said("redis://h", tmp_path / "none")
    assert "is empty" in said("redis://h", empty)
    assert "is set, but BIGCRAWL_REDIS_URL" in said(None, secret)
    twice = said("redis://:0ther@h", secret)
    assert "set one of them" in twice
    assert "s3cret" not in twice
    assert "0ther" not in twice


def test_links_of_copies_are_dropped_only_where_copies_are_known() -> None:
    """The message says what else must be set."""
    drop: dict[str, object] = {"BIGCRAWL_COPY_LINKS": "drop"}
    for also in ({}, {"BIGCRAWL_WARC_COPIES": "by-reference", "BIGCRAWL_WARC_DIR": ""}):
        with pytest.raises(ConfigError, match=r"BIGCRAWL_COPY_LINKS.*set BIGCRAWL_WARC_COPIES"):
            read_config(Settings(drop | also))
    assert read_config(Settings(drop | {"BIGCRAWL_WARC_COPIES": "by-reference"})).crawl.drops_copy_links
    assert not read_config(Settings()).crawl.drops_copy_links


@pytest.mark.parametrize("url", ["memory://x", "sftp://host/path", "/mnt/pages", "s3://", "s3:bucket"])
def test_a_store_for_pages_is_of_a_kind_that_shows_whole_files(url: str) -> None:
    """Another one is refused at the start, not when the first file is full."""
    with pytest.raises(ConfigError, match=r"BIGCRAWL_WARC_STORE_URL is .*; it takes s3://"):
        read_config({"BIGCRAWL_WARC_STORE_URL": url, "BIGCRAWL_WARC_DIR": "warc"})


@pytest.mark.parametrize("is_there", [True, False])
def test_a_store_for_pages_is_not_where_they_are(tmp_path: Path, is_there: bool) -> None:
    """Under no name: what is removed after it was stored would be removed from the store."""
    warc = tmp_path / "warc"
    if is_there:
        warc.mkdir()
    (tmp_path / "link").symlink_to(warc)
    (tmp_path / "besides").mkdir()
    for one, other in (("warc", "warc"), ("link", "warc"), ("warc", "link"), ("besides/../warc/", "warc")):
        settings = {"BIGCRAWL_WARC_STORE_URL": f"file://{tmp_path}/{one}", "BIGCRAWL_WARC_DIR": f"{tmp_path}/{other}"}
        with pytest.raises(ConfigError, match="the same directory as BIGCRAWL_WARC_DIR"):
            read_config(settings)
    settings = {"BIGCRAWL_WARC_STORE_URL": f"file://{tmp_path}/besides", "BIGCRAWL_WARC_DIR": str(warc)}
    assert read_config(settings).crawl.warc_store_url == f"file://{tmp_path}/besides"


def test_a_store_for_pages_needs_its_package_and_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says what to install, or what to set."""
    with pytest.raises(ConfigError, match="but BIGCRAWL_WARC_DIR"):
        read_config({"BIGCRAWL_WARC_STORE_URL": "s3://pages", "BIGCRAWL_WARC_DIR": ""})
    settings = {"BIGCRAWL_WARC_STORE_URL": "gs://pages", "BIGCRAWL_WARC_DIR": "warc"}
    assert read_config(settings).crawl.warc_store_url == "gs://pages"
    monkeypatch.setattr(pages, "find_spec", lambda name: None if name == "gcsfs" else name)
    with pytest.raises(ConfigError, match="pip install gcsfs"):
        read_config(settings)
