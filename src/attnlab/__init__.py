"""attnlab: a laboratory for small transformers that runs on a laptop's CPU."""
