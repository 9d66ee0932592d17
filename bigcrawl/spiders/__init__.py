"""Spiders, which are base classes for spiders of users, too.

`broad.BroadSpider` crawls all that its seeds lead to, `site.SiteSpider` whole hosts, `focused.FocusedSpider` what is
about a topic first, `sitemap.SitemapSpider` what sites list, `feeds.FeedsSpider` what they announce.
`sample.SampleSpider` walks at random, for sizes and samples, and `redis_spider.RedisSpider` takes its URLs from a list
in Redis.
"""
