"""Patch attention with hand-written gradients: compiled by Numba, no autograd anywhere.

Read in this order: ``linear`` and ``softmax`` (one step forward, one step back), ``attention``,
``layers``, ``circuits`` (why fewer products are needed than the model has matrices), ``passes`` (the whole
chain), ``network`` (what to call).
"""

from attnlab.explicit.arrays import Gradients, Parameters
from attnlab.explicit.network import Network

__all__ = ["Gradients", "Network", "Parameters"]
