"""All parts of the frontier that use Scrapy, besides `scheduler` and `dupefilter`."""
