"""Seconds of their kind; that of robots.txt with a back-off so short that a test sees the end of it."""

from __future__ import annotations

from bigcrawl.middlewares.robots import RobotsMiddleware
from bigcrawl.middlewares.throttle import ThrottleMiddleware
from bigcrawl.pipelines.warc import WarcPipeline


class HastyThrottle(ThrottleMiddleware):
    """A project's own, beside bigcrawl's."""


class HastyRobots(RobotsMiddleware):
    """Doubles from 200 ms."""

    attempt_first_ms = 200


class SecondWarc(WarcPipeline):
    """A project's own, beside bigcrawl's."""
