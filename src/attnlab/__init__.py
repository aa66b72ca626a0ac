"""attnlab: a laboratory for small transformers that runs on a laptop's CPU."""

from attnlab.cores import bound_spinning

bound_spinning()
