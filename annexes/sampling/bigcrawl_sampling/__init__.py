"""The size of a web, and a near-uniform sample of its pages, from random walks."""
