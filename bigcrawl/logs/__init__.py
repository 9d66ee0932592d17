"""How lines of the log look, and how often a problem is told; standard library only.

json_lines   `LOG_FORMAT = "json"`: each line is an object
repeats      a problem that repeats is told once, and counted
"""
