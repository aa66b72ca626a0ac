"""Projections: what a model makes of many examples, as points in a plane, and how far to trust it."""
