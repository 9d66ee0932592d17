"""The web itself, of which no page is stored: names, links, robots.txt, and the exact set of reachable URLs."""
