"""A simulated web with a known answer: for tests, benchmarks and users' own spiders. docs/simweb.md is its manual.

`Web` (web.py) is the web itself, a pure function of its arguments: any page of any host can be asked for,
none is stored, and `Web.expected` knows what a crawl must find. `server.py` serves one on loopback
addresses and logs every request, `resolver.py` answers for its names; `checker.py` holds such a log, or any other
server's, to the answer and to the rules of politeness. `UniformWeb` (uniform.py) is the same for benchmarks, without
end and without an answer.

How an answer comes about: `population.py` says which hosts there are, how large, and who is linked to, `names.py`
what they are called; `resources.py` what a host has and under which paths, `graph.py` who links to whom; `robots.py`
and `robots_kinds.py` what is forbidden where, `weather.py` when a host is away; `spelling.py` how links are written,
`markup.py` the HTML around them, `answers.py` puts it together. What is odd stands in tables: `exhibits.py` and the
modules it names. `outlook.py` and `reach.py` are the known answer.
"""

from __future__ import annotations

from bigcrawl.simweb.basics.answer import Answer
from bigcrawl.simweb.check.checker import Exchange, Report, Rules, check
from bigcrawl.simweb.model.web import Web

__all__ = ["Answer", "Exchange", "Report", "Rules", "Web", "check"]
