"""The loops of a node, one module each (the docstring of `node.node` lists them), and what they have in common.

loop      the base class of loops, and what runs them
recovery  what the pump does after a restart of Redis
room      how many URLs the pump may take
memory    what `tidy` gives back, and how a process that runs for days uses memory
"""
