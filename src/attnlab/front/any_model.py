"""Models of others, with what can be asked of their heads as methods.

vit = attnlab.wrap(timm.create_model("vit_tiny_patch16_224", num_classes=10), reads="cls")
data = attnlab.examples(images, labels)
vit.heads(data)                          # where every head looks
vit.ablate(data)                         # what is lost without each of them
with vit.without("blocks.3.attn.1"):
    vit(images)
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, final

import torch
from torch import Tensor, nn
from torch.utils.data import Dataset

from attnlab.analysis.ablate.ablation import Ablation, AblationResult, ablate
from attnlab.analysis.ablate.baselines import make_baseline, mask_without, masked
from attnlab.analysis.choices import BaselineName, PruningMethod, Repair, check_pruned
from attnlab.analysis.explain.plain import explain_examples, explain_input, open_plain
from attnlab.analysis.explain.results import Explanation, Judgement
from attnlab.analysis.heads import HeadsResult, describe_heads
from attnlab.analysis.patch.contrasts import PatchResult
from attnlab.analysis.patch.plain import answered, pair_up, patch_plain
from attnlab.analysis.prune.elimination import check_heads_kept
from attnlab.analysis.prune.plain import describe_wrapped, prune_wrapped
from attnlab.analysis.prune.runs import PruningResult
from attnlab.analysis.record import Recording
from attnlab.analysis.record_plain import record_plain
from attnlab.analysis.subjects import Subject
from attnlab.display import Meter, meters
from attnlab.doctor.findings import Diagnosis
from attnlab.errors import InputError, LabError, brief
from attnlab.explorer.library import model_library
from attnlab.explorer.opening import open_explorer
from attnlab.foreign.model import Output, Reads, Wrapped
from attnlab.foreign.wrap import wrapped
from attnlab.front.diagnosing import diagnose
from attnlab.lazy import Later
from attnlab.progress import silent
from attnlab.sets import Examples, Pairs
from attnlab.specs.codec import unwritten

if TYPE_CHECKING:
    from attnlab.explorer import bench
    from attnlab.explorer.edits import Edit
    from attnlab.explorer.widget import Explorer
else:
    bench = Later("attnlab.explorer.bench")

Inputs = Examples | Tensor | Sequence[Tensor]
"""What a model is given: of examples, one input or those that the module takes, row by row."""

BASELINES: tuple[BaselineName, ...] = ("mean", "zero")


@final
class AnyModel(Wrapped):
    """A copy of somebody's module, made by ``attnlab.wrap``."""

    def record(self, inputs: Inputs, *taps: str, labels: Sequence[str] | None = None) -> Recording:
        """The value at every tap while it computes, or at those that match, such as ``"*.pattern"``.

        Values have examples along their first axis. ``labels`` are what the tokens of a single input are
        called; without them they go by their numbers, and patches by row and column.
        """
        return record_plain(self.batch_first(), _inputs(inputs), *taps, labels=labels)

    def handout(self, out: str | Path) -> NoReturn:
        """Refused: a page holds the code of attnlab's models, and none of somebody's own."""
        raise LabError(
            f"{self.called} cannot be written as {brief(str(out))}: only models that attnlab builds can "
            "run in a page without Python"
        )

    def diagnose(self, data: Examples, *, training: Examples | None = None) -> Diagnosis:
        """Why it does not learn: findings with evidence, confidence and remedy, and what was checked.

        ``data`` are validation examples to probe it with, ``training`` the training examples.
        """
        return diagnose(self, data, training=training)

    def heads(self, data: Examples) -> HeadsResult:
        """Where every head looks on ``data``, each number next to that of uniform attention."""
        return describe_heads(_subject(self, data))

    def ablate(
        self,
        data: Examples,
        *,
        training: Examples | None = None,
        baselines: Sequence[BaselineName] = BASELINES,
        heads: Sequence[str] = (),
        pairs: bool = False,
        shapley: int = 0,
        seed: int = 0,
    ) -> AblationResult:
        """What is lost on ``data`` without every head, alone and, if so asked, together with others.

        ``training`` is what the mean and the optimal constants are made from; without it, ``data`` itself.
        """
        plan = Ablation(
            baselines=tuple(baselines), heads=tuple(heads), pairs=pairs, orders=shapley, seed=seed
        )
        return ablate(_subject(self, data), data if training is None else training, plan)

    def explain(
        self,
        inputs: Inputs,
        *,
        many: int = 0,
        place: str = "",
        data: Examples | None = None,
        labels: Sequence[str] | None = None,
        empty: float = 0.0,
        seed: int = 0,
    ) -> Explanation | Judgement:
        """Which patches or tokens of an input the answer is attributed to, by six methods, and how far to
        believe each of them.

        ``inputs`` are one example, or several of which ``many`` are drawn to judge the methods by. Parts
        that are taken away are replaced by those of ``data``; without it, by others of the same input. An
        ``empty`` pixel is what replaces one by nothing. ``labels`` are what tokens are called. Of an answer
        of several tokens only the one at ``place``, which counts from 1, is explained if it is given.
        """
        model, given = self.batch_first(), _inputs(inputs)
        self.require_own_keys()
        if many:
            if not isinstance(inputs, Examples):
                raise InputError(f"many is {many}, so the inputs need labels; make them by examples()")
            plain = open_plain(model, given, data=data or inputs, labels=labels, empty=empty)
            return explain_examples(plain, inputs, many, place=place, name=self.called, seed=seed)
        if len(given[0]) != 1:
            raise InputError(f"there are {len(given[0])} inputs; give one, or say how many to judge by")
        plain = open_plain(model, given, data=data, labels=labels, empty=empty)
        truth = inputs.targets if isinstance(inputs, Examples) else None
        return explain_input(plain, given, truth, place=place, name=self.called, seed=seed)

    def patch(
        self,
        base: Pairs | Inputs,
        donor: Inputs | None = None,
        *,
        pairs: int = 64,
    ) -> PatchResult:
        """What carries a difference: values of one input are put into another that differs in one thing, at
        every layer, position and head, and what is measured is how much of the answer comes along.

        ``base`` and ``donor`` are inputs row by row, with the answers that the model gives or, if they are
        examples, with their labels; or ``base`` is pairs already. Up to ``pairs`` of them that the model
        gets right on both sides are used to find with, as many others to test what was found.
        """
        model = self.batch_first()
        if not isinstance(base, Pairs):
            if donor is None:
                raise InputError("there is no donor; give base and donor, or pairs of both")
            sides = (
                each if isinstance(each, Examples) else answered(model, _inputs(each))
                for each in (base, donor)
            )
            base = pair_up(*sides)
        with meters() as stages:
            return patch_plain(model, [base], pairs=pairs, stages=stages)

    def prune(
        self,
        data: Examples,
        *,
        keep: int | None = None,
        loss: float | None = None,
        method: PruningMethod = "greedy",
        repair: Repair = "mean",
        training: Examples | None = None,
        test: Examples | None = None,
    ) -> "AnyPruning":
        """Remove heads that are chosen jointly by ``data``; the smaller model is ``model`` of the result.

        ``keep`` says how many heads stay; instead, ``loss`` keeps the fewest with which the share of right
        answers falls by less than this. The heads are really removed: their weights are gone, and what is
        left is compared with the masked model. A constant takes the place of each: its mean over
        ``training`` examples, or the one with the lowest loss (``repair="optimal"``); without them, over
        ``data``. ``test`` examples are scored once, at the end; without them it is ``data`` that is scored,
        which flatters the smaller model.
        """
        check_pruned(keep, loss)
        subject = _subject(self, data)
        total = check_heads_kept(subject.model, self.called, keep)
        with Meter("removing heads", total - (keep or 0)) as meter:
            found, pruned = prune_wrapped(
                subject,
                data if training is None else training,
                keep=keep,
                loss=loss,
                method=method,
                repair=repair,
                progress=meter.update,
            )
        told = describe_wrapped(found, pruned, data if test is None else test)
        assert isinstance(pruned.model, AnyModel)
        return AnyPruning(**vars(told), model=pruned.model.as_module())

    def explore(
        self,
        data: Examples,
        *,
        labels: Sequence[str] = (),
        serve: bool | None = None,
        port: int = 0,
        browser: bool = True,
    ) -> "Explorer | None":
        """Touch the model: see every head while it answers one of ``data``, and change what you like.

        ``labels`` name its classes. In a notebook it is a widget; elsewhere a page in the browser, served
        until Ctrl-C. ``serve`` says which. ``port`` 0 is any that is free, and without ``browser`` only the
        page's address is printed.
        """
        library = model_library(self.batch_first(), data, labels)
        return open_explorer(library, "", serve=serve, port=port, browser=browser)

    @contextmanager
    def changed(
        self,
        *edits: "Edit | dict[str, Any]",
        data: Examples | None = None,
        other: Inputs | None = None,
    ) -> Iterator["AnyModel"]:
        """Change what happens in the model for as long as the context is open, as in the explorer.

        ``edits`` are ``Off``, ``Scale``, ``Paint`` and ``Swap`` of ``attnlab.explorer.edits``, or their
        JSON, such as ``{"op": "scale", "at": "blocks.3.attn.1", "by": 0}``. What is off towards the mean or
        resampled is made from ``data``; what is swapped comes from the one input ``other``.
        """
        given = None if other is None else _inputs(other)
        with bench.changed_model(self, edits, data, given):
            yield self

    @contextmanager
    def without(
        self, *heads: str, to: BaselineName = "zero", data: Examples | None = None
    ) -> Iterator["AnyModel"]:
        """Take heads out for as long as the context is open.

        ``to`` is what takes the place of their output; all but zero are made from ``data``.
        """
        if to != "zero" and data is None:
            raise InputError(f"to is {brief(to)}, which is made from examples; give them as data")
        nothing = Examples((torch.zeros(1),), torch.zeros(1, dtype=torch.long))
        known = nothing if data is None else data
        baseline = make_baseline(to, _subject(self, known), known, 0, lambda _: silent)
        with masked(self, mask_without(self, heads), baseline):
            yield self


@final
@dataclass(frozen=True, kw_only=True)
class AnyPruning(PruningResult):
    """What was removed from a model, what it cost, and the smaller ``model`` itself."""

    model: AnyModel = unwritten()


def wrap(
    module: nn.Module,
    *,
    inputs: Tensor | Sequence[Any] | dict[str, Any] | None = None,
    fixed: Mapping[str, Any] | None = None,
    reads: Reads = "mean",
    output: Output | None = None,
    batch_first: bool | None = None,
) -> AnyModel:
    """A model that computes what ``module`` does, whose heads can be recorded, edited and taken out.

    Torch's attention and transformers, timm's and Hugging Face's models, and modules that call
    ``F.scaled_dot_product_attention`` can be wrapped; ``module`` is left as it is. Outputs before and after
    are compared each time, and a copy that differs is refused.

    ``inputs`` are what to try the module on, by order or by name; those of torch's, timm's and Hugging
    Face's models are made up. ``fixed`` are arguments that are the same for all examples, such as a causal
    mask. ``reads`` says which tokens the output is made of: the first (cls), all alike (mean) or the last.
    ``output`` makes logits of what the module gives, if that is not a tensor. ``batch_first=False`` says
    that the module takes examples along the second axis; torch's own are asked.

    >>> import torch, attnlab
    >>> layer = torch.nn.TransformerEncoderLayer(8, 2, batch_first=True)
    >>> [site.head_names for site in attnlab.wrap(layer).sites()]
    [['self_attn.0', 'self_attn.1']]
    """
    return wrapped(
        AnyModel,
        module,
        inputs=(inputs,) if isinstance(inputs, Tensor) else inputs,
        fixed=fixed,
        reads=reads,
        output=output,
        batch_first=batch_first,
    )


def examples(inputs: Any, labels: Tensor | None = None) -> Examples:
    """Examples to ask a wrapped model: tensors and their labels, or a Dataset or DataLoader of such pairs.

    ``inputs`` is a tensor, or a tuple of those that the module takes. ``labels`` are numbers of classes
    (N,), or of tokens (N, T).

    >>> import torch
    >>> len(examples(torch.zeros(7, 1, 8, 8), torch.arange(7)))
    7
    """
    if labels is None:
        if isinstance(inputs, Dataset):
            inputs = torch.utils.data.DataLoader(inputs, batch_size=256)
        if not isinstance(inputs, Iterable) or isinstance(inputs, Tensor | tuple):
            raise InputError("there are no labels; give inputs and labels, a Dataset or a DataLoader")
        parts = [(given if isinstance(given, tuple | list) else [given], each) for given, each in inputs]
        if not parts:
            raise InputError("there are no examples to look at; give at least 1")
        columns = zip(*(given for given, _ in parts), strict=True)
        inputs, labels = tuple(map(torch.cat, columns)), torch.cat([each for _, each in parts])
    tensors = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    if any(len(part) != len(labels) for part in tensors):
        sizes = ", ".join(str(len(part)) for part in tensors)
        raise InputError(f"there are {sizes} inputs for {len(labels)} labels; give one label for each")
    return Examples(tuple(part.cpu() for part in tensors), labels.cpu())


def _inputs(given: Inputs) -> tuple[Tensor, ...]:
    """What the model is given."""
    if isinstance(given, Examples):
        return given.inputs
    return tuple(part.cpu() for part in ((given,) if isinstance(given, Tensor) else given))


def _subject(model: Wrapped, data: object) -> Subject:
    """Examples of one class are a group of their own."""
    if not isinstance(data, Examples):
        raise InputError(
            f"data is a {type(data).__name__}; give inputs with labels, made by "
            "attnlab.examples(inputs, labels)"
        )
    model = model.batch_first()
    if data.targets.dim() > 1:
        return Subject(model, data, {}, [str(place + 1) for place in range(data.targets.shape[1])])
    groups = {str(each): data.targets == each for each in sorted(set(data.targets.tolist()))}
    return Subject(model, data, groups, ["class"])
