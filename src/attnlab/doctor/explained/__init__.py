"""A small file for each kind of fault: why it does what it does, and the fault in a few lines of torch.

``rate_too_low.py`` explains ``rate-too-low``. The docstring says why, and names a paper where one fits; the
code shows the effect and asserts it, and is run as it is by whoever reads it. ``explanations`` reads them.
"""
