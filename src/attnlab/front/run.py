"""A run in Python: a trained model, and everything that can be asked of it, as methods.

Their names and arguments are those of the commands, which are thin layers over these methods. Each shows
its progress, returns a ``Result`` that shows itself, and keeps it in the run folder. The model is read
once, so what is changed in it by ``without`` holds for every method meanwhile; such results are not kept.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, final, overload

from attnlab.analysis.choices import (
    SAMPLES,
    SURE,
    BaselineName,
    MapHeads,
    MapScale,
    MapView,
    ProjectionMethod,
    PruningMethod,
    Repair,
    check_explained,
    check_pruned,
    check_sure,
    check_views,
)
from attnlab.display import Meter, meters, say
from attnlab.errors import InputError, RunError, brief
from attnlab.front.specs import check_options
from attnlab.lazy import Later
from attnlab.results import Part, Result, parts_html
from attnlab.runs import RunFolder, check_unused
from attnlab.specs import Split, Task
from attnlab.storage import check_out
from attnlab.tables.card import run_card

if TYPE_CHECKING:
    from attnlab import export as exporting
    from attnlab.analysis import analyses, image_classifier, image_maps, record, subjects
    from attnlab.analysis import calibrate as calibrating
    from attnlab.analysis import heads as head_analysis
    from attnlab.analysis import patterns as looking
    from attnlab.analysis import positions as places
    from attnlab.analysis.ablate import ablation, baselines
    from attnlab.analysis.ablate.ablation import AblationResult
    from attnlab.analysis.ablate.baselines import Baseline
    from attnlab.analysis.calibrate import CalibrateResult
    from attnlab.analysis.evaluate import Evaluation
    from attnlab.analysis.explain import runs as explaining
    from attnlab.analysis.explain.results import Explanation, Judgement
    from attnlab.analysis.heads import HeadsResult
    from attnlab.analysis.image_classifier import ImageClassifier
    from attnlab.analysis.image_evaluation import ImageEvaluation
    from attnlab.analysis.image_maps import Maps
    from attnlab.analysis.patch import contrasts
    from attnlab.analysis.patch.contrasts import PatchResult
    from attnlab.analysis.patterns import Patterns
    from attnlab.analysis.positions import PositionsResult
    from attnlab.analysis.predict import Prediction
    from attnlab.analysis.project import points, projection
    from attnlab.analysis.project.points import TapNames
    from attnlab.analysis.project.projection import ProjectedRun
    from attnlab.analysis.prune import runs as pruned_runs
    from attnlab.analysis.prune.runs import PruningResult
    from attnlab.analysis.record import Recording
    from attnlab.analysis.samples import ShownImages
    from attnlab.analysis.timelapse import runs as timelapses
    from attnlab.analysis.timelapse.runs import Timelapse
    from attnlab.doctor.findings import Diagnosis
    from attnlab.explorer import bench, handout, library, opening
    from attnlab.explorer.edits import Edit
    from attnlab.explorer.handout import Handout
    from attnlab.explorer.widget import Explorer
    from attnlab.export import Export
    from attnlab.front import diagnosing, image_answers, own_analyses, pruning, training
    from attnlab.front import ensemble as together
    from attnlab.front.ensemble import RunEnsemble
    from attnlab.front.image_answers import OnRefusal
    from attnlab.report import run_report
    from attnlab.training.trackers import Tracker
else:
    ablation, analyses, baselines, calibrating, head_analysis, image_classifier = Later.parts(
        "attnlab.analysis",
        "ablate.ablation", "analyses", "ablate.baselines", "calibrate", "heads", "image_classifier",
    )  # fmt: skip
    contrasts, explaining, image_maps, looking, places, points, projection = Later.parts(
        "attnlab.analysis",
        "patch.contrasts", "explain.runs", "image_maps", "patterns", "positions", "project.points",
        "project.projection",
    )  # fmt: skip
    pruned_runs, record, subjects, timelapses = Later.parts(
        "attnlab.analysis", "prune.runs", "record", "subjects", "timelapse.runs"
    )
    exporting, run_report = Later("attnlab.export"), Later("attnlab.report.run_report")
    bench, handout, library, opening = Later.parts(
        "attnlab.explorer", "bench", "handout", "library", "opening"
    )
    diagnosing, image_answers, own_analyses, pruning, together, training = Later.parts(
        "attnlab.front", "diagnosing", "image_answers", "own_analyses", "pruning", "ensemble", "training"
    )

PAGE = "report.html"
"""What the page of a run is called."""
SECONDS_A_POINT = 0.004
"""What t-SNE takes on two cores."""


@final
@dataclass(frozen=True)
class Run(RunFolder):
    """A trained model and everything known about it; made by ``train`` and ``load``.

    >>> run = load("zoo:adder")
    >>> run.evaluate(split="valid").exact_match
    1.0
    """

    @property
    def task(self) -> Task:
        """What it was trained to do."""
        return self.spec().task

    def tables(self) -> list[Part]:
        """Task, model, size, accuracy and how it was trained, for people."""
        return run_card(self)

    def _repr_html_(self) -> str:
        return parts_html(self.tables())

    def explore(
        self,
        text: str = "",
        *,
        serve: bool | None = None,
        port: int = 0,
        browser: bool = True,
    ) -> "Explorer | None":
        """Touch the model: give it inputs, see every head while the answer forms, and change what you like.

        ``text`` is the first input. In a notebook it is a widget, whose ``input``, ``off`` and ``answer``
        can be read and set; elsewhere a page in the browser, served until Ctrl-C. ``serve`` says which.
        ``port`` 0 is any that is free, and without ``browser`` only the page's address is printed.
        """
        self._require_whole("explore")
        return opening.open_explorer(
            library.library_of(self), text, serve=serve, port=port, browser=browser
        )

    def resume(
        self,
        *,
        checkpoint: float = 10.0,
        track: "Sequence[Tracker]" = (),
        show: int = 0,
        doctor: bool = False,
    ) -> "Run":
        """Go on with a training that was stopped, to the same bytes as if it had not been; this run.

        ``checkpoint`` are the seconds between two saves of the training state. ``track`` names who gets the
        metrics besides the run folder. ``show`` shows so many validation images after each epoch. With
        ``doctor`` what is wrong is said as soon as it is sure, and a diagnosis is made at the end.
        """
        if self.shipped:
            say(f"{self.name} is finished already")
            return self
        self._require_whole("resume")
        check_options(self.task, checkpoint=checkpoint, track=track, show=show)
        training.resume(self, checkpoint=checkpoint, track=track, show=show, doctor=doctor)
        for read in ("model", "classifier", "_baselines"):  # before there were these weights
            vars(self).pop(read, None)
        return self

    @cached_property
    def classifier(self) -> "ImageClassifier":
        """Its model as one that classifies images."""
        return image_classifier.image_classifier(self)

    @overload
    def predict(self, inputs: str) -> "Prediction": ...
    @overload
    def predict(self, inputs: list[Any] | tuple[Any, ...]) -> "list[Prediction]": ...
    @overload
    def predict(self, inputs: Any, *, refused: "OnRefusal" = "raise", sure: float = SURE) -> Any: ...
    def predict(self, inputs: Any, *, refused: "OnRefusal" = "raise", sure: float = SURE) -> Any:
        """The answer to an input as the task writes it (``"374+814"``), its probability, and whether it is
        correct; a list of inputs gives a list. ``"test:7"`` is the test example number 7.

        An image is the name of a file, ``"test:7"`` for the test image number 7, an array, a tensor or a
        picture of Pillow; a folder and an array of several images give a list. An array of the size of the
        task's images is taken as it is. With ``refused="keep"`` images that cannot be read have their error
        in the place of an answer. The ``text`` of an answer is "not sure" where its probability is below
        ``sure``; 0 always answers.
        """
        check_sure(sure)
        if self.task.images:
            return image_answers.answers(self.classifier, inputs, refused, sure)
        if isinstance(inputs, str):
            (only,) = analyses.predict_inputs(self, [inputs])
            return only
        if not inputs:
            raise InputError("there is nothing to answer; give at least one input")
        return list(analyses.predict_inputs(self, inputs))

    def predict_lines(self, lines: "Iterable[str]") -> "Iterator[Prediction]":
        """The answers to any number of inputs as the task writes them, such as the lines of a file: read,
        answered and given a batch at a time, so that memory does not grow with their number.

        The first line that cannot be read ends them with an ``InputError``. Images have ``predict``.

        >>> [answer.text for answer in load("zoo:adder").predict_lines(["374+814", "999+1"])]
        ['1188', '1000']
        """
        if self.task.images:
            raise InputError("images are no lines; give them to predict")
        return analyses.predict_inputs(self, lines)

    def evaluate(self, *, split: Split = "test", views: int = 1) -> "Evaluation | ImageEvaluation":
        """How good it is on examples that it was not trained on.

        Use ``split="valid"`` for model selection and ``test`` once, for the final figure. ``views`` above 1
        also averages each image's probabilities over 5 or 9 shifts by a pixel, reported separately.
        """
        check_views(views)
        if views > 1 and not self.task.images:
            raise InputError(f"views is {views}, but only images can be moved; {self.name} reads none")
        if self.task.images:
            return image_answers.evaluated(self.classifier, split, views, run=self)
        with Meter("evaluating", 1) as meter:
            return analyses.evaluate_any(self, split, progress=meter.update)

    def calibrate(self) -> "CalibrateResult":
        """Fit a temperature on validation data and keep it: logits are divided by it before probabilities
        are made of them. Answers stay as they are. Training does so at its end.
        """
        self._require_whole("calibrate")
        if self.shipped:
            raise InputError(
                f"{self.name} is shipped and keeps its temperature, {self.temperature:g}; give the folder "
                "of a run of yours"
            )
        if self.summary() is None:
            raise RunError(f"the training of {self.path} has not ended; resume it, which calibrates it")
        return calibrating.calibrate_run(self)

    def show(
        self, *, samples: int = 10, wrong: bool = False, split: Split = "test", seed: int = 0
    ) -> "ShownImages":
        """Some images with what it says about them, or with ``wrong`` only images that it misclassifies.

        Another ``seed`` draws others.
        """
        return image_answers.shown(self.classifier, samples=samples, wrong=wrong, split=split, seed=seed)

    def ensemble(
        self, *others: "str | Path | RunFolder", best: int = 0, out: str | Path = ""
    ) -> "RunEnsemble":
        """Average its probabilities with those of other runs that classify the same images.

        ``best`` takes so many of them, the best on validation images; 0 takes all. ``out`` is the folder to
        create, by default runs/ensemble, numbered if taken.
        """
        return together.join(self, others, best=best, out=out)

    def record(self, inputs: str | Sequence[str], *taps: str) -> "Recording":
        """The value at every tap while it answers, or at those that match, such as ``"*.pattern"``."""
        names, examples = analyses.examples_of(self, [inputs] if isinstance(inputs, str) else inputs)
        return record.record_answers(self.task, self.model, examples, *taps, names=names)

    def patterns(
        self, *, example: str = "", head: str = "", examples: int = 12, split: Split = "valid"
    ) -> "Patterns":
        """Where heads look: every head on one ``example``, or on the first of the split; or one ``head`` on
        that example, or on so many ``examples`` of the split.
        """
        return looking.run_patterns(self, example=example, head=head, split=split, examples=examples)

    def maps(
        self,
        inputs: Any = (),
        *,
        view: Literal["auto"] | MapView = "auto",
        heads: Literal["auto"] | MapHeads = "auto",
        layer: int | None = None,
        head: str = "",
        patch: str = "",
        samples: int = 1,
        split: Split = "test",
        scale: MapScale = "fixed",
    ) -> "Maps":
        """What each patch of an image gets of its attention.

        ``inputs`` are images as ``predict`` takes them; without any, the first ``samples`` of the split.
        ``view`` says from which queries: all (``received``), those of one ``patch`` (``sent``), the token
        in front (``cls``), each digit that is said (``digits``), or through all layers (``rollout``).
        ``heads`` are drawn each, as their mean or as their maximum; ``layer`` or ``head`` chooses some.
        """
        with Meter("looking at images", 1) as meter:
            found = image_maps.map_run(
                self,
                inputs,
                view=view,
                heads=heads,
                layer=layer,
                head=head,
                patch=patch,
                samples=samples,
                split=split,
                scale=scale,
                progress=meter.update,
            )
        if found.each:
            say(
                f"maps are means over the heads of a layer: one of each head would be {found.each:,} maps "
                f"and a figure holds {image_maps.MOST}; a layer or a head chooses some"
            )
        return found

    @contextmanager
    def without(self, *heads: str, to: BaselineName = "zero", seed: int = 0) -> Iterator["Run"]:
        """Take heads out for as long as the context is open; everything asked of the run is without them.

        ``to`` is what takes the place of a head's output: nothing (``zero``), its mean over training
        examples (``mean``) or the constant with the lowest loss (``optimal``). What a head gives for
        another example (``resample``) fits only the examples that ``ablate`` asks.
        """
        if to == "resample":
            raise InputError("to is 'resample', which only ablate() can do; use zero, mean or optimal")
        mask = baselines.mask_without(self.model, heads)
        with baselines.masked(self.model, mask, self._baseline(to, seed)):
            yield self

    def _baseline(self, to: BaselineName, seed: int) -> "Baseline":
        """What takes the place of heads, made once of the model as it is: constants take seconds to fit."""
        if not self.edited and (known := self._baselines.get((to, seed))) is not None:
            return known
        examples = subjects.load_subject(self, split="train", count=ablation.TRAINING)
        with meters() as stages:
            made = baselines.make_baseline(to, examples, examples.examples, seed, stages)
        return made if self.edited else self._baselines.setdefault((to, seed), made)

    @cached_property
    def _baselines(self) -> "dict[tuple[BaselineName, int], Baseline]":
        return {}

    @contextmanager
    def changed(
        self, *edits: "Edit | dict[str, Any]", other: Any = None, snapshot: int | None = None
    ) -> Iterator["Run"]:
        """Change what happens in the model for as long as the context is open, as in the explorer.

        ``edits`` are ``Off``, ``Scale``, ``Paint`` and ``Swap`` of ``attnlab.explorer.edits``, or their
        JSON, such as ``{"op": "off", "at": "encoder.0.self.3", "to": "mean"}``. ``other`` is the input that
        swapped values come from. With ``snapshot`` the model has the weights of this step, which training
        kept.

        >>> run = load("zoo:adder")
        >>> with run.changed({"op": "swap", "at": "encoder.0"}, other="374+814"):
        ...     answer = run.predict("1+1").text
        """
        with bench.changed_run(self, edits, other, snapshot):
            yield self

    def diagnose(self, *, budget: float = 0.0) -> "Diagnosis":
        """Why it does not learn: findings with evidence, confidence and remedy, and what was checked.

        It looks at what the run logged and probes the model, which takes seconds. ``budget`` are the
        seconds that experiments, which are short trainings, may take besides.
        """
        self._require_whole("diagnose")
        return diagnosing.diagnose(self, budget=budget)

    def heads(self, *, split: Split = "valid", examples: int = 2000) -> "HeadsResult":
        """Where every head looks on many examples, each number next to that of uniform attention."""
        with Meter("measuring heads", examples) as meter:
            return head_analysis.heads_run(self, split=split, count=examples, progress=meter.update)

    def ablate(
        self,
        *,
        baselines: Sequence[BaselineName] = ("optimal", "mean", "zero", "resample"),
        heads: Sequence[str] = (),
        pairs: bool = False,
        shapley: int = 0,
        split: Split = "valid",
        examples: int = 2000,
        seed: int = 0,
    ) -> "AblationResult":
        """Take out every head, alone and together with others, and measure what is lost.

        ``baselines`` are what takes the place of a head's output; the first is the one heads are ranked by.
        ``pairs`` also takes out every two heads at once, ``shapley`` estimates Shapley values from so many
        orders of the heads.
        """
        plan = ablation.Ablation(
            baselines=tuple(baselines), heads=tuple(heads), pairs=pairs, orders=shapley, seed=seed
        )
        with meters() as stages:
            return ablation.ablate_run(self, plan, split=split, count=examples, stages=stages)

    @overload
    def explain(
        self, text: str, *, place: str = "", split: Split = "test", seed: int = 0
    ) -> "Explanation": ...
    @overload
    def explain(
        self, text: str = "", *, many: int, place: str = "", split: Split = "test", seed: int = 0
    ) -> "Judgement": ...
    def explain(
        self, text: str = "", *, many: int = 0, place: str = "", split: Split = "test", seed: int = 0
    ) -> "Explanation | Judgement":
        """Which parts of an input an answer is attributed to, by six methods, and how they are judged.

        ``text`` is an input as ``predict`` takes it. ``many`` judges the methods on so many inputs of
        ``split`` instead, with intervals. ``place`` asks only about this part of the answer, such as
        ``"10^1"`` of a sum; by default about all of them, and with ``many`` about one of each input, drawn
        at random.
        """
        check_explained(text, many, split)
        with Meter("explaining", many or 1) as meter:
            if not many:
                return explaining.explain_run(self, text, place=place, seed=seed, progress=meter.update)
            return explaining.explain_split(
                self, many, place=place, split=split, seed=seed, progress=meter.update
            )

    def patch(self, *, pairs: int = 64, **options: Any) -> "PatchResult":
        """What carries a difference: values of one example are put into another that differs in one thing,
        at every layer, position and head.

        ``pairs`` are the pairs of examples to find with; as many others test what was found. ``options``
        are those of the task's ``contrasts``; for sums ``column``, ``reach`` and ``digit``.
        """
        with meters() as stages:
            return contrasts.patch_run(self, pairs=pairs, stages=stages, **options)

    def prune(
        self,
        *,
        keep: int | None = None,
        loss: float | None = None,
        finetune: int = 0,
        method: PruningMethod = "greedy",
        repair: Repair = "refit",
        examples: int = 1000,
        out: str | Path = "",
    ) -> "Run":
        """Remove heads that are chosen jointly; the smaller model is a run of its own, whose ``pruning``
        says what was cut and what it cost.

        ``keep`` is how many heads to keep; ``loss`` keeps the fewest heads with which exact match falls by
        less. ``finetune`` are steps of training afterwards; if they are interrupted, ``resume`` goes on.
        ``method`` and ``repair`` say how heads are chosen and what makes up for them. ``out`` is the folder
        to create, by default runs/NAME-pruned-HEADS, numbered if taken.
        """
        check_pruned(keep, loss, finetune)
        self._require_whole("prune")
        if out:
            check_unused(Path(out))
        return pruning.prune(
            self,
            keep=keep,
            loss=loss,
            finetune=finetune,
            method=method,
            repair=repair,
            examples=examples,
            out=out,
        )

    @property
    def pruning(self) -> "PruningResult | None":
        """How it was pruned from another run, or None if it was not."""
        return self.kept("prune", pruned_runs.PruningResult)

    def analyses(self) -> list[str]:
        """The names of what only its task offers, such as ``verify`` for sums: each is a method."""
        return own_analyses.own_names(self)

    def __getattr__(self, name: str) -> "Callable[..., Result]":
        """An analysis that only its task offers; its options go by name."""
        if name.startswith("_"):
            raise AttributeError(f"{brief(type(self).__name__)} has no attribute {brief(name)}")
        return own_analyses.own_analysis(self, name)

    def __dir__(self) -> Iterable[str]:
        try:
            return [*super().__dir__(), *self.analyses()]
        except RunError:  # a damaged folder
            return super().__dir__()

    def taps(self) -> "TapNames":
        """What a tap can be called: short names, and the paths of all taps and modules."""
        return points.tap_names(self)

    def project(
        self,
        *,
        tap: str = "",
        token: str = "digit",
        method: ProjectionMethod = "tsne",
        samples: int = SAMPLES,
        split: Split = "test",
        seed: int = 0,
    ) -> "ProjectedRun":
        """What it makes of many examples, as points in a plane, with the numbers that judge the picture.

        ``tap`` is one of ``taps()``, by default what the readout sees. ``token`` chooses among the patches
        of a digit: their mean (``digit``), each of them (``all``), the token in front (``cls``) or a row
        and a column (``"3,2"``). The projection of another run can be put ``beside`` this one.
        """
        if method == "tsne" and samples > SAMPLES:
            say(f"t-SNE takes about {samples * SECONDS_A_POINT:.0f} s on two cores")
        with Meter(f"reading {self.name}", 1) as meter:
            found = projection.project_run(
                self,
                tap=tap,
                token=token,
                method=method,
                samples=samples,
                split=split,
                seed=seed,
                progress=meter.update,
            )
        if found.points < samples:
            why = f"the {split} split has no more"
            say(f"{found.run}: {found.points:,} points instead of {samples:,}, since {why}")
        name = projection.kept_name(
            tap, method=method, token=token, samples=samples, split=split, seed=seed
        )
        return self.keep(name, found)

    def timelapse(
        self, *, examples: int = 500, samples: int = 300, tap: str = "", token: str = "digit"
    ) -> "Timelapse":
        """How accuracy, heads, positions and a projection moved in training, and when it learned suddenly.

        It looks at the snapshots that training kept (``snapshots=[24]``); of a run that kept none, at its
        first and its best weights. Heads are measured on ``examples``; ``samples`` points of ``tap`` are
        projected, none if it is 0.
        """
        self._require_whole("timelapse")
        with Meter("looking at snapshots", 1) as meter:
            return timelapses.timelapse_run(
                self, examples=examples, samples=samples, tap=tap, token=token, progress=meter.update
            )

    def positions(self, *, length: int = 0) -> "PositionsResult":
        """What its positions look like: vectors by place, how alike places are, and how far vectors moved.

        ``length`` are the tokens to look at, by default twice as many as in training.
        """
        return places.describe_positions(self.called, places.run_places(self), length=length)

    def report(self, out: str | Path = "", *, samples: int = SAMPLES, sections: Sequence[str] = ()) -> Path:
        """Write one self-contained page: how it trained, how good it is, its heads, maps and mistakes; the
        file.

        ``out`` ends in .html; by default it is report.html in the run folder, or here for a shipped run.
        ``samples`` are the examples on which heads and projections are measured. ``sections`` are those to
        write, by default all.
        """
        check_out(out, ".html")
        if self.edited and not out:
            raise InputError(
                "out is empty, but the page of a model without some heads is not the run's; name one"
            )
        path = Path(out or PAGE) if out or self.shipped else self.file(PAGE)
        with Meter("writing the page, section", 1) as meter:
            return run_report.write_report(
                self, path, samples=samples, sections=sections, progress=meter.update
            )

    def export(self, onnx: str | Path) -> "Export":
        """Write its model as an ONNX graph, once onnxruntime computes the same with it as torch, and
        instructions next to it.
        """
        path = Path(onnx)
        if not path.name or path.is_dir():
            raise InputError(f"onnx is {brief(str(onnx))}; it must name a file, such as model.onnx")
        say("making the graph, which takes some seconds")
        with Meter("comparing with torch", 1) as meter:
            return exporting.export_run(self, path, progress=meter.update)

    def handout(self, out: str | Path) -> "Handout":
        """Write the explorer as one HTML file in which the model itself runs: a browser is all it needs.

        ``out`` ends in .html. The file is written once its own script, in V8, has answered 1,000 examples
        as torch does, with logits within 0.001; that needs ``pip install 'attnlab[explorer]'``.
        """
        self._require_whole("handout")
        if not str(out):
            raise InputError("out is empty; name a file that ends in .html")
        check_out(out, ".html")
        with meters() as stages:
            return handout.write_handout(self, Path(out), stages=stages)

    def _require_whole(self, method: str) -> None:
        """Refuse to ask saved weights inside of ``without``, which changes only the model."""
        if self.edited:
            raise InputError(
                f"{method}() works on saved weights, which without() does not change; leave it first"
            )
