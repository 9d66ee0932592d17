"""A simulated web with a known answer, for tests, benchmarks and users' own spiders. docs/simweb.md is its manual.

`Web` is a pure function of its arguments: any page can be requested, none is stored, and `Web.expected` is the correct
result of a crawl. The checker compares a server's log with that result and with the rules of politeness.
"""

from __future__ import annotations

from bigcrawl_simweb.basics.answer import Answer
from bigcrawl_simweb.check.checker import CheckRules, Exchange, Report, check_exchanges
from bigcrawl_simweb.model.web import Web

__all__ = ["Answer", "CheckRules", "Exchange", "Report", "Web", "check_exchanges"]
