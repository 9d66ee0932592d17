"""What inputs from outside cost: each kind of input through the code that meets it in a crawl, measured in a process.

`targets` has a function for each kind of input, `worker` is the process that runs them within a bound of memory and
CPU, `measure` has inputs measured by one. `genomes` are inputs as short recipes that grow to any size, `corpus` the
bombs that are known, and `search` looks for others.
"""
