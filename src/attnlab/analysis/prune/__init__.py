"""Pruning: heads chosen jointly and really removed."""
