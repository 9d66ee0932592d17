"""Scrapy middlewares, and what else Scrapy loads in their place; thin.

Some bring a page's links to the frontier (`links`, `page_directives`) or stand in the place of Scrapy's (`compression`,
`redirects`, `dns`). The others are for crawls without the frontier (docs/alone.md): `robots`,
`throttle`, `polite_queue` and `dns_guarded`; `standalone` is what they share.
"""
