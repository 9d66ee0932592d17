"""The loops of a node, one module each (the docstring of `node.node` lists them), and what they have in common.

loop      the base class of loops, and what runs them
troubles  which loops failed, and whether Redis was restarted
recovery  what the pump does after a restart of Redis
room      how many URLs the pump may take
"""
