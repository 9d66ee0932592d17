"""What a crawl is asked and what it shows: commands, dashboard, metrics, report, terminal."""
