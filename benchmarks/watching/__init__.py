"""What it costs a crawl of many hosts to be watched, by those who watch it for real: a scraper and a browser."""
