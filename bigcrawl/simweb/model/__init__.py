"""The web itself, of which no page is stored: names, links, robots.txt, and the exact answer to what can be reached."""
