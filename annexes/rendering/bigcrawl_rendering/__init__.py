"""Renders pages whose text or links come from scripts.

detection   which pages those are, from their bytes
requirements  what it needs, and whether settings are right
rules       what the operator says about URLs
scanning    tags and texts of a page, in one pass
interface   what a renderer is given, and what it returns
middleware  passes pages to the renderer, and its documents to the spider
loads       fetches what a page asks for
chromium    the renderer that ships
browsers    Chromium's processes, and their bounds
tab         one page in a browser
script/     what runs in the page
"""
