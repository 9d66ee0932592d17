"""The loops of a node, one module each; the docstring of `node.node` lists them."""
