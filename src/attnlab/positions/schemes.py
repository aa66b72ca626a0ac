"""The schemes, each a class for one of the slots: of a row of tokens, of a grid of patches, and mappings.

**Sines and cosines of falling frequency** (Vaswani et al., "Attention Is All You Need", 2017).

    PE(p, 2i) = sin(p / base^(2i/D)),   PE(p, 2i+1) = cos(p / base^(2i/D))

Sines and cosines alternate, as in the paper. PE(p + k) is a fixed rotation of PE(p), so the dot
product of two encodings depends on their distance alone.

Beyond trained lengths every place has its vector, and fast waves only repeat; slow ones, which have not
been through a period in training, reach values that the model has never seen.

**A trained vector for each place** (Gehring et al., 2017; Devlin et al., 2019).

    PE(p) = E[min(p, length - 1)]

Beyond the table the last vector serves, so that a longer sequence is answered, if badly, instead of
refused: places past the end cannot be told apart.

**Rotary positions** (Su et al., "RoFormer", 2021).

Coordinates 2i and 2i+1 of a query or key at place p are turned by the angle p * base^(-2i/K):

    (x, y) -> (x cos a - y sin a, x sin a + y cos a)

The dot product of a turned query and a turned key depends on their distance alone. Neighbouring
coordinates form a pair, as in the paper; some implementations pair i with i + K/2 instead.

Beyond trained lengths any place can be asked for, and scores of near pairs are those of training wherever
they stand; distances that training never had give slow pairs angles that it never had.

**Linear biases** (Press, Smith and Lewis, "Train Short, Test Long" (ALiBi), 2022).

    bias(h, i, j) = -m_h |i - j|,   m_h = 2^(-8 h / H),   h = 1 .. H

The paper has this for decoders, where only keys before the query are seen; here the distance counts in both
directions, so it serves encoders too. For H that is no power of two the paper takes other slopes; here
the formula is always the same.

Beyond trained lengths the line goes on: a far key weighs less than any key of training did.

**Relative biases by buckets of distances** (Raffel et al., "T5", 2020).

    bias(h, i, j) = E[bucket(j - i), h]

Of n = buckets / 2 buckets for each direction the first n / 2 hold one distance each; the others hold ranges
that widen logarithmically up to ``distance``:

    bucket(d) = d                                                              for d < e = n // 2
    bucket(d) = e + floor((n - e) log(d / e) / log(distance / e)), at most n - 1    for d >= e

Keys after the query use buckets n onwards. All layers of a stack share the table, as in the paper, also in
a decoder, where the half for later keys is never asked for.

Beyond trained lengths every distance from ``distance`` on falls into the last bucket: far keys cannot be
told apart. A bucket that no distance of training fell into keeps its first values.

**Places in a grid**, for the patches of an image: patch p is in row p // columns, column p % columns.

Sinusoidal (as in Wang and Liu, 2019, and He et al., "Masked Autoencoders", 2022): waves of the row fill one
half of the width, waves of the column the other. Any row and any column can be asked for.

Learned: PE(p) = R[row] + C[column]; Dosovitskiy et al. ("ViT", 2021) put the two vectors side by side
instead. Beyond the last trained row the last one serves.

Rotary (axial, as in Heo et al., "Rotary Position Embedding for Vision Transformer", 2024): the first half
of a query or key is turned as by rotary positions at its row, the second half at its column. Scores then
depend on how far apart rows and columns are.

``front`` tokens stand before the patches and are in no row and no column: nothing is added to them, and
nothing turns them.

**Other places** than 0, 1, 2: drawn at random in training, or squeezed into the places of training.

**Randomised** (Ruoss et al., "Randomized Positional Encodings Boost Length Generalization of
Transformers", 2023): in training the n tokens of a sequence stand at a random subset of 0 .. limit - 1 in
rising order, drawn anew for each pass, and in a padded batch for each sequence. Evaluation draws nothing:
its places are spread evenly, so that the same input always gives the same answer:

    p_i = floor((i + 1/2) limit / n),   i = 0 .. n - 1

Beyond trained lengths all places up to ``limit`` are known from training, only their gaps become narrower.
More than ``limit`` tokens have no place and are refused.

**Interpolated** (Chen et al., "Extending Context Window of Large Language Models via Positional
Interpolation", 2023), with n0 tokens the longest sequence of training:

    p_i = i min(1, n0 / n)

Beyond trained lengths no place lies outside those of training, but neighbours stand closer than they did.

Both depend on a sequence's own length, never on its padding.

**Columns**: what belongs together, such as the digits of two numbers and of their sum that stand for the
same power of ten, stands at one place (Cho et al., "Position Coupling", 2024; McLeish et al., "Transformers
Can Do Arithmetic with the Right Embeddings" (Abacus), 2024). The task says how tokens are counted:

    p_i = i - b_i + lead,   b_i the first token of the run that holds token i

A run ends with a token that the task names; an answer is one run. In training each example is moved by a
random number, the same for its input and its answer, so that every place below ``limit`` is learned.

Beyond trained lengths a place between is known from training, and so are differences of places that are
small. Turns and biases by columns hold between the answer and the input as well.

**A window** of w: keys more than w places away get a bias of -10,000, which leaves nothing of them where a
query sees a nearer one.
"""

import math
from collections.abc import Sequence
from typing import ClassVar, final

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int, Real
from torch import Tensor, nn

from attnlab.devices import widest
from attnlab.errors import LabError
from attnlab.positions.slots import Add, Bias, Biases, KeyPlaces, Mapping, Places, Rotation, Vectors, places

FAR = -1e4
"""The bias of a key outside of a window: finite, so that a query which sees no other key stays a number."""


@final
class SinusoidalWaves(Add):
    """Fixed waves added to the input; nothing is trained."""

    frequency: Tensor

    def __init__(self, *, width: int, base: float = 10_000.0) -> None:
        super().__init__()
        frequency = base ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
        self.register_buffer("frequency", frequency, persistent=False)

    def forward(self, places: Places) -> Float[Tensor, "*R T D"]:
        angle = places[..., None] * self.frequency  # (R, T, D/2)
        return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(-2)  # (R, T, D)


@final
class LearnedTable(Add):
    """A table of vectors, drawn from N(0, scale^2) and trained with the model."""

    def __init__(self, *, width: int, length: int, scale: float) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(length, width) * scale)

    def forward(self, places: Places) -> Float[Tensor, "*R T D"]:
        return self.table[places.long().clamp(max=len(self.table) - 1)]


@final
class RotaryRotation(Rotation):
    """Rotates queries and keys; nothing is trained."""

    frequency: Tensor

    def __init__(self, *, head_width: int, base: float = 10_000.0) -> None:
        super().__init__()
        frequency = base ** (-torch.arange(0, head_width, 2, dtype=torch.float64) / head_width)
        self.register_buffer("frequency", frequency, persistent=False)

    def forward(self, vectors: Vectors, places: Places) -> Vectors:
        angle = places[..., None, :, None] * self.frequency  # (R, 1, T, K/2)
        cos, sin = angle.cos().to(vectors.dtype), angle.sin().to(vectors.dtype)
        x, y = vectors[..., 0::2], vectors[..., 1::2]  # (B, H, T, K/2) each
        return torch.stack((x * cos - y * sin, x * sin + y * cos), dim=-1).flatten(-2)


@final
class LinearBias(Bias):
    """A slope for each head; nothing is trained."""

    by_offset: ClassVar[bool] = True
    slopes: Tensor

    def __init__(self, *, heads: int) -> None:
        super().__init__()
        slopes = 2 ** (-8 * torch.arange(1, heads + 1, dtype=torch.float64) / heads)
        self.register_buffer("slopes", slopes.float(), persistent=False)

    def forward(self, query_places: Places, key_places: KeyPlaces) -> Biases:
        i, j = query_places.to(self.slopes.dtype), key_places.to(self.slopes.dtype)
        distance = (i[..., :, None] - j[..., None, :]).abs()
        return -self.slopes[:, None, None] * distance[..., None, :, :]


@final
class BucketBias(Bias):
    """A trained number for each bucket and head, drawn from N(0, scale^2)."""

    by_offset: ClassVar[bool] = True
    buckets: Tensor

    def __init__(self, *, heads: int, buckets: int, distance: int, scale: float) -> None:
        super().__init__()
        self.distance = distance
        self.table = nn.Parameter(torch.randn(buckets, heads) * scale)
        offsets = range(-distance, distance + 1)
        found = [bucket(abs(d), buckets // 2, distance) + (buckets // 2 if d > 0 else 0) for d in offsets]
        self.register_buffer("buckets", torch.tensor(found), persistent=False)

    def forward(self, query_places: Places, key_places: KeyPlaces) -> Biases:
        offset = (key_places[..., None, :] - query_places[..., :, None]).long()
        by_offset = self.table.T[:, self.buckets]  # (H, 2 distance + 1)
        return by_offset[:, offset.clamp(-self.distance, self.distance) + self.distance].movedim(0, -3)


@final
class WindowBias(Bias):
    """What ``inner`` adds, if anything, and ``FAR`` where a key is more than ``window`` places away."""

    by_offset: ClassVar[bool] = True

    def __init__(self, *, window: int, inner: Bias | None = None) -> None:
        super().__init__()
        self.window = window
        self.inner = inner

    def forward(self, query_places: Places, key_places: KeyPlaces) -> Biases:
        distance = (key_places[..., None, :] - query_places[..., :, None]).abs()
        far = FAR * (distance > self.window)[..., None, :, :]
        return far if self.inner is None else far + self.inner(query_places, key_places)


def bucket(d: int, buckets: int, distance: int) -> int:
    """The bucket of the distance ``d``, of ``buckets`` in one direction."""
    exact = buckets // 2
    if d < exact:
        return d
    wide = (buckets - exact) * math.log(d / exact) / math.log(distance / exact)
    return min(exact + int(wide), buckets - 1)


@final
class GridWaves(Add):
    """Fixed waves of row and column; nothing is trained."""

    def __init__(self, *, width: int, columns: int, base: float = 10_000.0, front: int = 0) -> None:
        super().__init__()
        self.columns = columns
        self.front = front
        self.waves = SinusoidalWaves(width=width // 2, base=base)

    def forward(self, places: Places) -> Float[Tensor, "*R T D"]:
        row, column, patch = _cells(places, self.columns, self.front)
        return torch.cat((self.waves(row), self.waves(column)), dim=-1) * patch[..., None]


@final
class GridTable(Add):
    """A vector for each row plus one for each column, drawn from N(0, scale^2) and trained."""

    def __init__(self, *, width: int, rows: int, columns: int, scale: float, front: int = 0) -> None:
        super().__init__()
        self.front = front
        self.rows = nn.Parameter(torch.randn(rows, width) * scale)
        self.columns = nn.Parameter(torch.randn(columns, width) * scale)

    def forward(self, places: Places) -> Float[Tensor, "*R T D"]:
        row, column, patch = _cells(places.long(), len(self.columns), self.front)
        both = self.rows[row.clamp(max=len(self.rows) - 1)] + self.columns[column]
        return both if self.front == 0 else both * patch[..., None]


@final
class GridRotation(Rotation):
    """Rotates one half by the row and the other by the column; nothing is trained."""

    def __init__(self, *, head_width: int, columns: int, base: float = 100.0, front: int = 0) -> None:
        super().__init__()
        self.columns = columns
        self.front = front
        self.rotate = RotaryRotation(head_width=head_width // 2, base=base)

    def forward(self, vectors: Vectors, places: Places) -> Vectors:
        row, column, _ = _cells(places, self.columns, self.front)  # in front: place 0, the angle 0
        by_row, by_column = vectors.chunk(2, dim=-1)
        return torch.cat((self.rotate(by_row, row), self.rotate(by_column, column)), dim=-1)


def _cells(places: Places, columns: int, front: int) -> tuple[Places, Places, Int[Tensor, "*R T"]]:
    """Row and column of each place, and whether it is a patch; what stands in front is said to be at 0."""
    patches = (places - front).clamp(min=0)
    return patches // columns, patches % columns, (places >= front).long()


@final
class RandomPlaces(Mapping):
    """A random subset of 0 .. limit - 1 in training, an even one in evaluation."""

    def __init__(self, *, limit: int) -> None:
        super().__init__()
        self.limit = limit

    def forward(
        self,
        length: int,
        like: Tensor,
        lengths: Int[Tensor, "B"] | None,
        tokens: Int[Tensor, "B T"] | None = None,
    ) -> Real[Tensor, "R T"]:
        own = own_lengths(length, like, lengths)
        if not torch.compiler.is_exporting():  # a graph cannot refuse what it is given
            self._check(int(own.max()))
        return self.drawn(length, own) if self.training else self.even(length, own)

    def _check(self, longest: int) -> None:
        if longest > self.limit:
            raise LabError(
                f"a sequence of {longest:,} tokens cannot be placed: randomised positions reach "
                f"{self.limit:,} tokens (model.positions.limit)"
            )

    def even(self, length: int, own: Int[Tensor, "R 1"]) -> Int[Tensor, "R T"]:
        """Places spread evenly; tokens of padding stand last."""
        spread = (2 * places(0, length, own) + 1) * self.limit // (2 * own)
        return spread.clamp(max=self.limit - 1)

    def drawn(self, length: int, own: Int[Tensor, "R 1"]) -> Int[Tensor, "R T"]:
        """Places drawn without replacement and put in order; tokens of padding stand last."""
        order = torch.rand(len(own), self.limit, device=own.device)
        count = min(length, self.limit)
        chosen = order.topk(count, dim=1).indices
        rest = places(0, count, own) >= own
        chosen = chosen.masked_fill(rest, self.limit).sort(dim=1).values.clamp(max=self.limit - 1)
        return torch.cat((chosen, chosen.new_full((len(own), length - count), self.limit - 1)), dim=1)


@final
class SqueezedPlaces(Mapping):
    """Places of at most ``trained`` tokens for any number of them."""

    def __init__(self, *, trained: int) -> None:
        super().__init__()
        self.trained = trained

    def forward(
        self,
        length: int,
        like: Tensor,
        lengths: Int[Tensor, "B"] | None,
        tokens: Int[Tensor, "B T"] | None = None,
    ) -> Float[Tensor, "R T"]:
        own = own_lengths(length, like, lengths).to(widest(like.device))
        squeeze = (self.trained / own).clamp(max=1)
        return places(0, length, like) * squeeze


@final
class ColumnPlaces(Mapping):
    """Columns, counted anew behind each of the ``breaks``; an answer is counted from 0."""

    couples: ClassVar[bool] = True

    def __init__(self, *, limit: int, breaks: Sequence[int] = (), lead: int = 0) -> None:
        super().__init__()
        self.limit = limit
        self.breaks = tuple(breaks)
        self.lead = lead

    def forward(
        self,
        length: int,
        like: Tensor,
        lengths: Int[Tensor, "B"] | None,
        tokens: Int[Tensor, "B T"] | None = None,
    ) -> Int[Tensor, "R T"]:
        number = places(0, length, like)
        if tokens is None:
            return number[None]
        if not self.breaks:
            return number[None] + self.lead
        ends = torch.stack([tokens == each for each in self.breaks]).any(dim=0)
        found = number - run_starts(ends) + self.lead
        if torch.compiler.is_exporting() or not bool((found == found[:1]).all()):
            return found
        return found[:1]  # one row for all: so is a bias, which is made for every row otherwise

    def shift(self, length: int, like: Tensor) -> Int[Tensor, "B 1"] | None:
        if not self.training:
            return None
        return torch.randint(max(1, self.limit - length + 1), (len(like), 1), device=like.device)


def run_starts(ends: Bool[Tensor, "B T"]) -> Int[Tensor, "B T"]:
    """The first token of each token's run; a run ends with a token at which ``ends`` is true."""
    behind = torch.where(ends, places(1, ends.shape[1] + 1, ends), 0)
    begins = F.pad(behind[:, :-1], (1, 0))
    if not torch.compiler.is_exporting():
        return begins.cummax(dim=1).values
    earlier = places(0, ends.shape[1], ends)[:, None] >= places(
        0, ends.shape[1], ends
    )  # ONNX has no cummax
    return torch.where(earlier, begins[:, None], 0).amax(dim=2)


def own_lengths(length: int, like: Tensor, lengths: Int[Tensor, "B"] | None) -> Int[Tensor, "R 1"]:
    """True lengths, a row each; one row for all where nothing is padded."""
    if lengths is None:
        return torch.full((1, 1), length, device=like.device)
    return lengths[:, None]
