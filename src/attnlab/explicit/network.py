"""Patch attention, trained and applied without autograd.

    image (28, 28) -> patches (T, P)
    tokens = relu(patches W_patch^T + b_patch + positions)
    q, k, v linear in tokens;  pattern = softmax(q k^T / sqrt(D));  z = pattern v
    logits = mean over tokens of (relu(z W1^T + b1) W2^T + b2), times W_out^T, plus b_out
    loss = mean over the batch of the cross-entropy

The modules beside this one derive each gradient; ``passes`` puts them together.
"""

import time
from collections.abc import Mapping
from functools import partial
from typing import final

import numpy as np
from jaxtyping import Float, Int

from attnlab.errors import LabError
from attnlab.explicit.arrays import Gradients, Parameters, make_arrays, read_parameters, zeros
from attnlab.explicit.compiling import Array
from attnlab.explicit.passes import call, done, finish, learn, prepare, read
from attnlab.explicit.workers import ASLEEP, LINE, WORK, get_helpers, one_at_a_time, share


@final
class Network:
    """Patch attention on given parameters, which ``step`` changes in place.

    ``parameters`` go by the names of the torch module, and may be views of its tensors. ``threads`` workers
    share a batch: their number decides how sums are rounded, the machine's does not. float32 or float64, as
    the parameters are.
    """

    def __init__(self, parameters: Mapping[str, Array] | Parameters, *, threads: int) -> None:
        if threads < 1:
            raise LabError(f"threads is {threads}; at least 1 is needed")
        self.parameters, self.sizes = read_parameters(parameters)
        self.dtype = self.parameters.positions.dtype
        self._merged, self._space, self._sums, self._gradients = make_arrays(
            self.sizes, self.dtype, threads
        )
        self._threads = threads
        self._job, self._called = zeros((3,), np.int64), zeros((threads,), np.int64)
        self._words = zeros((threads, LINE), np.int64)
        where = self._merged, self._space, self._sums
        self._given = self._job, self._words, self.sizes.side, self.sizes.patch, *where

    def step(self, images: Float[Array, "B Y X"], labels: Int[Array, "B"], lr: float) -> tuple[float, int]:
        """One step of gradient descent; the loss before it, and how many images were read right."""
        return self._learn(images, labels, lr)

    def gradients(
        self, images: Float[Array, "B Y X"], labels: Int[Array, "B"]
    ) -> tuple[float, int, Gradients]:
        """Loss, right answers and gradients; nothing is changed."""
        loss, right = self._learn(images, labels, 0.0)
        pairs = zip(self._gradients, self.parameters, strict=True)
        cropped = (found[tuple(slice(n) for n in like.shape)].copy() for found, like in pairs)
        return loss, right, Gradients(*cropped)

    def logits(self, images: Float[Array, "N Y X"]) -> Float[Array, "N C"]:
        self._check(images)
        out = np.empty((len(images), self.sizes.classes), self.dtype)
        prepare(self.parameters, self._merged)
        given = images, self.sizes.patch, self._merged, self._space, out
        share(lambda worker: read(worker, *given), self._threads)
        return out

    def _learn(self, images: Array, labels: Array, lr: float) -> tuple[float, int]:
        self._check(images)
        self._check_labels(labels, len(images))
        with one_at_a_time:
            prepare(self.parameters, self._merged)
            self._job[:] = images.ctypes.data, labels.ctypes.data, len(images)
            self._wake()
            try:
                learn(0, *self._given)
            finally:
                self._wait()  # helpers read the images
            finish(self.parameters, self._merged, self._sums, self._gradients, self.dtype.type(lr))
        return float(self._sums.loss.sum()) / len(images), int(self._sums.right.sum())

    def _wake(self) -> None:
        """Helpers that still watch for work begin at once; the others are woken."""
        if self._threads == 1:
            return
        helpers = get_helpers(self._threads - 1)
        for worker, helper in enumerate(helpers, start=1):
            if not helper.busy:  # it may be new, after a fork
                self._words[worker, 0] = ASLEEP
        call(self._words, self._called)
        for worker, helper in enumerate(helpers, start=1):
            if not self._called[worker]:
                self._words[worker, 0] = WORK
                helper.start(partial(learn, worker, *self._given))

    def _wait(self) -> None:
        """Until all helpers have done their parts."""
        while self._threads > 1 and not done(self._words):
            for helper in get_helpers(self._threads - 1):
                helper.check()
            time.sleep(0)

    def _check(self, images: Array) -> None:
        side = self.sizes.side
        if images.shape[1:] != (side, side) or images.dtype != self.dtype or not images.flags.c_contiguous:
            raise LabError(
                f"images are {images.dtype} {images.shape}; the network "
                f"takes contiguous {self.dtype} (B, {side}, {side})"
            )

    def _check_labels(self, labels: Array, count: int) -> None:
        if (
            labels.shape != (count,)
            or labels.dtype != np.int64
            or not labels.flags.c_contiguous
            or not count
        ):
            raise LabError(
                f"labels are {labels.dtype} {labels.shape}; one int64 for each of {count} images is needed"
            )
        low, high = labels.min(), labels.max()
        if low < 0 or high >= self.sizes.classes:
            raise LabError(f"labels go from {low} to {high}; classes go from 0 to {self.sizes.classes - 1}")
