"""The whole chain: one image forward and backward, a worker's share of a batch, the batch, the update.

Every worker goes through its own part of the batch image by image, so that everything an image needs
stays in the cache next to the core, and sums gradients in arrays of its own. The sums are then added in
the order of the workers: the result depends on their number, never on their timing.
"""

from typing import Any

from jaxtyping import Float, Int

from attnlab.explicit.arrays import Gradients, Merged, Parameters, Space, Sums
from attnlab.explicit.attention import attention_backward, attention_forward
from attnlab.explicit.circuits import merge, unmerge
from attnlab.explicit.compiling import SOURCES, Array, entry, inlined, kernel
from attnlab.explicit.layers import (
    cross_entropy,
    cut_patches,
    embed_backward,
    embed_forward,
    feed_backward,
    feed_forward,
    read_backward,
    read_forward,
)
from attnlab.explicit.workers import all_done, array_at, call_helpers, next_turn


@inlined
def forward(image: Float[Array, "Y X"], patch: int, net: Merged, w: int, at: Space) -> None:
    """Fills worker ``w``'s space up to the logits."""
    cut_patches(image, patch, at.patches[w])
    embed_forward(net, w, at)
    attention_forward(
        at.tokens[w], net.look_t, net.look_bias,
        at.looks[w], at.looks_t[w], at.pattern_t[w], at.mixed[w], at.top[w], at.total[w],
    )  # fmt: skip
    feed_forward(net, w, at)
    read_forward(net, w, at)


@inlined
def backward(net: Merged, w: int, at: Space, to: Sums) -> None:
    """Adds one image's gradients to worker ``w``'s sums, from the gradient of the logits down."""
    read_backward(net, w, at, to)
    feed_backward(net, w, at, to)
    at.d_tokens[w] = 0
    attention_backward(
        at.tokens[w], net.look, at.looks[w], at.pattern_t[w], at.d_mixed[w],
        at.d_mixed_t[w], at.d_pattern_t[w], at.d_looks[w], at.total[w],
        to.look[w], to.look_bias[w], at.d_tokens[w],
    )  # fmt: skip
    embed_backward(w, at, to)


@inlined
def learn_part(
    w: int,
    images: Float[Array, "B Y X"],
    labels: Int[Array, "B"],
    patch: int,
    net: Merged,
    at: Space,
    to: Sums,
) -> None:
    """Worker ``w``'s sums over its part of the batch."""
    for total in (to.embed, to.positions, to.look, to.feed, to.read):
        total[w] = 0
    for bias in (to.look_bias, to.feed_bias, to.read_bias):
        bias[w] = 0
    loss, right, count, workers = 0.0, 0, images.shape[0], to.loss.shape[0]
    share = at.logits.dtype.type(1 / count)
    for b in range(w * count // workers, (w + 1) * count // workers):
        forward(images[b], patch, net, w, at)
        one, hit = cross_entropy(at.logits[w], labels[b], share)
        loss += one
        right += hit
        backward(net, w, at, to)
    to.loss[w] = loss
    to.right[w] = right


@inlined
def add_up(to: Sums) -> None:
    """The sums of all workers, in worker 0's place."""
    for total in (to.embed, to.positions, to.look, to.feed, to.read):
        for w in range(1, total.shape[0]):
            for n in range(total.shape[1]):
                for m in range(total.shape[2]):
                    total[0, n, m] += total[w, n, m]
    for bias in (to.look_bias, to.feed_bias, to.read_bias):
        for w in range(1, bias.shape[0]):
            for n in range(bias.shape[1]):
                bias[0, n] += bias[w, n]


@kernel
def descend(parameter: Array, gradient: Array, rate: float) -> None:
    """``parameter -= rate * gradient``; the gradient may be padded."""
    if parameter.ndim == 1:
        for n in range(parameter.shape[0]):
            parameter[n] -= rate * gradient[n]
    else:
        for n in range(parameter.shape[0]):
            for m in range(parameter.shape[1]):
                parameter[n, m] -= rate * gradient[n, m]


@inlined
def update(own: Parameters, by: Gradients, rate: float) -> None:
    """One step of gradient descent. The key's bias has no gradient (see ``circuits``)."""
    descend(own.embed_weight, by.embed_weight, rate)
    descend(own.embed_bias, by.embed_bias, rate)
    descend(own.positions, by.positions, rate)
    descend(own.query_weight, by.query_weight, rate)
    descend(own.query_bias, by.query_bias, rate)
    descend(own.key_weight, by.key_weight, rate)
    descend(own.value_weight, by.value_weight, rate)
    descend(own.value_bias, by.value_bias, rate)
    descend(own.expand_weight, by.expand_weight, rate)
    descend(own.expand_bias, by.expand_bias, rate)
    descend(own.contract_weight, by.contract_weight, rate)
    descend(own.contract_bias, by.contract_bias, rate)
    descend(own.readout_weight, by.readout_weight, rate)
    descend(own.readout_bias, by.readout_bias, rate)


def _entries(sources: str) -> tuple[Any, ...]:
    """The functions that Python calls, with the folder's fingerprint in their closures."""

    @entry
    def prepare(own: Parameters, net: Merged) -> None:
        """Before a batch: merged weights."""
        _ = sources
        merge(own, net)

    @entry
    def learn(
        w: int,
        job: Int[Array, "3"],
        words: Int[Array, "W 8"],
        side: int,
        patch: int,
        net: Merged,
        at: Space,
        to: Sums,
    ) -> None:
        """Worker ``w``'s part of a batch; helpers wait for the next one (see ``workers``)."""
        _ = sources
        called = w == 0
        while True:
            images = array_at(job[0], (job[2], side, side), at.tokens)
            labels = array_at(job[1], (job[2],), job)
            learn_part(w, images, labels, patch, net, at, to)
            if called or not next_turn(words, w):
                break

    @entry
    def call(words: Int[Array, "W 8"], called: Int[Array, "W"]) -> None:
        _ = sources
        call_helpers(words, called)

    @entry
    def done(words: Int[Array, "W 8"]) -> bool:
        _ = sources
        return all_done(words)

    @entry
    def finish(own: Parameters, net: Merged, to: Sums, by: Gradients, rate: float) -> None:
        """After a batch: gradients of the parameters and, unless the rate is 0, a step down."""
        _ = sources
        add_up(to)
        unmerge(own, net, to, by)
        if rate != 0:
            update(own, by, rate)

    @entry
    def read(
        w: int,
        images: Float[Array, "N Y X"],
        patch: int,
        net: Merged,
        at: Space,
        logits: Float[Array, "N C"],
    ) -> None:
        _ = sources
        count, workers = images.shape[0], at.logits.shape[0]
        for n in range(w * count // workers, (w + 1) * count // workers):
            forward(images[n], patch, net, w, at)
            for c in range(logits.shape[1]):
                logits[n, c] = at.logits[w, c]

    return prepare, call, learn, done, finish, read


prepare, call, learn, done, finish, read = _entries(SOURCES)
