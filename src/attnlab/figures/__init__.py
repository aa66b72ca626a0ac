"""Figures: for each a data function, tested by value, and a drawing function, in its own module."""
