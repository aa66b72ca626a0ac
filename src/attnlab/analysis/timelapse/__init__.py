"""Time-lapse: how a model came to be what it is, from weights that its run kept on the way."""
