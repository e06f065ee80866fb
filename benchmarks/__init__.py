"""Programs that compare headwise with its peers, in one process and in turn. `python -m benchmarks`."""
