"""Load and timing runs: they drive the packaged tools against a real service and write benchmarks/results/."""
