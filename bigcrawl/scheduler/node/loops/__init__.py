"""The loops of a node, one module each, which the docstring of `node.node` tells; and what they have in common.

loop      what a loop is, and what runs them
troubles  which of them failed, and whether Redis was restarted
recovery  what the pump does after that
room      how many URLs the pump may take
"""
