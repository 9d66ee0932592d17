"""The real tools that show what a crawl has stored: pywb and py-wacz, and pictures of pages in Chromium."""
