"""The Scrapy project that containers and services run; docs/containers.md."""
