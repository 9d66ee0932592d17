"""Scrapy's media pipelines with S3: files and images of pages, one of them after a retry, one forbidden."""

from __future__ import annotations

from tests.plugins.base import PluginSpider

SETTINGS = {
    "ITEM_PIPELINES": {
        "scrapy.pipelines.files.FilesPipeline": 1,
        "scrapy.pipelines.images.ImagesPipeline": 2,
        "tests.plugins.projects.media.WithoutPlace": 3,
    },
    "IMAGES_THUMBS": {"small": (8, 8)},
}


class WithoutPlace:
    """A path is made of a URL of the side; what was stored before a kill is up to date, and not downloaded."""

    def process_item(self, item):
        for stored in (*item.get("files", ()), *item.get("images", ())):
            del stored["path"], stored["status"]
        return item


class Spider(PluginSpider):
    def work_of(self, response):
        here = response.url.rpartition("/")[2]
        files = [f"{self.site}/file/{here}", f"{self.site}/private/{here}", f"{self.site}/status/404"]
        if here == "1":
            files.append(f"{self.others[2]}/flaky/1/file")
        return {"file_urls": files, "image_urls": [f"{self.site}/picture/{here}.png"]}
