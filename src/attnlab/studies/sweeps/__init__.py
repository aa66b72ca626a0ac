"""Sweeps: a search over specs. A file says what is searched, Optuna proposes, workers of studies train."""
