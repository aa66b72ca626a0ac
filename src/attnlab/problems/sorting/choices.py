"""What is measured of lists at many lengths; nothing here computes."""

LENGTHS = "8,12,16,32,...,4096"
"""Lengths at which lists are measured."""
NEGATIVES = ("swap", "reference")
"""How those lists are put out of order."""
LISTS = 1000
"""How many there are at each length."""
STUDIED = {
    "lengths-factorial": ("16,64,256", 500),
    "lengths-256": ("8,12,16,32,...,256", 500),
    "lengths-1024": ("8,12,16,32,...,1024", 1000),
    "lengths-4096": ("16,256,1024,4096", 200),
    "lengths-16384": ("8,12,16,32,64,256,1024,4096,16384", 400),
}
"""What studies measure of a run, by the name under which it is kept: lengths, and lists at each."""
