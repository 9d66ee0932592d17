"""Languages: pay-level domains most of whose pages are in a language that nobody asked for get half of their budget."""
