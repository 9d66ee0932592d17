"""How lines of the log and other texts look, and how often a problem is told; standard library only.

plain        no sign of a text from outside moves a terminal's cursor or forges a line
json_lines   `LOG_FORMAT = "json"`: each line is an object
repeats      a problem that repeats is told once, and counted
"""
