"""Models, assembled from injected parts by builders that read specs."""

from attnlab.model import attentions, heads
from attnlab.models.build import build_for, build_model
from attnlab.models.classifier import Classifier, seen_keys
from attnlab.models.seq2seq import Seq2Seq

__all__ = ["Classifier", "Seq2Seq", "attentions", "build_for", "build_model", "heads", "seen_keys"]
