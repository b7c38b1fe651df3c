"""Files of a run in the forms that benchmarks take."""
