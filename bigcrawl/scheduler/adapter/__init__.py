"""All of the frontier that speaks to Scrapy, besides `scheduler` and `dupefilter`."""
