"""The course: solutions pass, blanks and planted mistakes get the feedback that fits them."""

import json
import re
import shutil
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from course_handouts import file_of, lesson_page
from course_steps import STEPS

from attnlab.course.answers import run_answers
from attnlab.course.comparing import alike, compare, largest_difference
from attnlab.course.feedback import Feedback
from attnlab.course.lessons import LESSONS, SEED, check_exercise, exercises_of
from attnlab.course.patients import HEALTHY, SICK, command_of, patient_spec
from attnlab.explorer.page_state import PageState
from commands import attnlab, complaint

COURSE = Path(__file__).parent.parent / "docs/course"
HEAD = "import math\nimport torch\nimport torch.nn.functional as F\nimport attnlab as al\n"


def feedback(lesson: str, exercise: str, source: str) -> Feedback:
    """What is said of one exercise to answers that define nothing else."""
    (found,) = (each for each in exercises_of(lesson) if each.name == exercise)
    torch.manual_seed(SEED)
    return check_exercise(found, run_answers("answers.py", HEAD + source))


def template(lesson: str) -> str:
    return (COURSE / lesson / "answers.py").read_text(encoding="utf-8")


def solution(lesson: str) -> str:
    return (COURSE / "solutions" / f"{lesson}.py").read_text(encoding="utf-8")


@pytest.mark.parametrize("lesson", ["lesson1", "lesson3", "lesson4"])
def test_solutions_pass(lesson: str, tmp_path: Path) -> None:
    found = json.loads(
        attnlab("check", lesson, COURSE / f"solutions/{lesson}.py", "--json", cwd=tmp_path).stdout
    )
    assert [each["exercise"] for each in found["feedback"] if not each["passed"]] == []
    assert found["passed"] == found["exercises"] == len(exercises_of(lesson))


@pytest.mark.slow
def test_the_solution_to_lesson6_passes(tmp_path: Path) -> None:
    attnlab("check", "lesson6", COURSE / "solutions/lesson6.py", cwd=tmp_path)


@pytest.mark.slow
def test_the_solution_to_lesson5_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the cheapest of its patients alone; the answer key is of all three."""
    monkeypatch.setattr("attnlab.course.lesson5.SICK", {"c": SICK["c"]})
    source = f"{solution('lesson5')}kinds = {{'c': kinds['c']}}\ncures = {{'c': cures['c']}}\n"
    for each in exercises_of("lesson5"):
        assert feedback("lesson5", each.name, source).passed
    found = feedback("lesson5", "cures", "cures = {'c': {'batch': 2048}}")
    assert found.got.startswith("{'batch': 2048} for patient c: ")
    assert found.hint == "the doctor now finds batch-too-large"
    found = feedback("lesson5", "kinds", "kinds = {'c': 'rate-too-low'}")
    assert found.hint == "train the patient by its command and read the first finding of attnlab doctor"


def test_a_lesson_from_start_to_end(tmp_path: Path) -> None:
    """Lesson 2 as a student does it: the template, one wrong answer, the page's calls, then all answers."""
    page = (COURSE / "lesson2.md").read_text(encoding="utf-8")
    (command,) = set(re.findall(r"^attnlab check (.*)$", page, re.MULTILINE))
    shutil.copy(COURSE / "lesson2/answers.py", tmp_path / "answers.py")
    blank = attnlab("check", *command.split(), cwd=tmp_path, code=1).stdout
    assert blank.count("hint:     fill in this blank") == 7
    assert blank.endswith("0 of 7 exercises pass\n")
    wrong = template("lesson2").replace("most_missed = ...", 'most_missed = "encoder.1.self.0"')
    (tmp_path / "answers.py").write_text(wrong)
    told = attnlab("check", *command.split(), cwd=tmp_path, code=1).stdout
    assert "encoder.1.self.0, without which 0.0% of the answers are lost" in told
    assert "looks sharply at few keys, but that does not say that it is needed" in told
    assert "see:      exercise 4, minutes 24 to 29" in told
    shutil.copy(COURSE / "solutions/lesson2.py", tmp_path / "answers.py")
    done = attnlab("check", *command.split(), cwd=tmp_path).stdout
    assert done.endswith("7 of 7 exercises pass; this lesson is complete\n")


@pytest.mark.parametrize("lesson", LESSONS)
def test_templates_ask_for_all_exercises_and_their_blanks_are_named(lesson: str) -> None:
    answers = run_answers("answers.py", template(lesson))
    for exercise in exercises_of(lesson):
        torch.manual_seed(SEED)
        found = check_exercise(exercise, answers)
        assert not found.passed
        assert found.hint.startswith("fill in this blank"), found
        assert found.step == exercise.step


ATTENTION = "def attention(q, k, v):\n    return {}\n"
MASK = "def causal_mask(n):\n    return {}\n"
MASKED = (
    "def masked_attention(q, k, v, visible):\n    s = q @ k.mT / math.sqrt(q.shape[-1])\n    return {}\n"
)
MANY = """
def attend(q, k, v, scale):
    return (q @ k.mT * scale).softmax(-1) @ v
def multi_head(x, wq, wk, wv, wo, heads):
    B, T, D = x.shape
    K = D // heads
    right = lambda y: y.view(B, T, heads, K).transpose(1, 2)
    torn = lambda y: y.reshape(B, heads, T, K)
    q, k, v = x @ wq, x @ wk, x @ wv
"""
ENTROPY = "def entropy(a):\n    return {}\n"
WEIGHT = "def weight_on(a, keys):\n    return {}\n"
ROLLOUT = """
def rollout(patterns):
    R = torch.eye(5)
    I = torch.eye(5)
    for A in {}:
        A = {}
        R = {}
    return R
"""
OCCLUDE = """
def occlusion(f, tokens, blank):
    found = []
    {}
    for at in range(len(tokens)):
        {}
        cut[at] = blank
        found.append({})
    return torch.stack(found)
"""
DELETE = """
def deletion_curve(f, tokens, scores, blank):
    left, points = tokens.clone(), {}
    for at in scores.argsort(descending={}):
        left[at] = blank
        points.append(f(left))
    return torch.stack(points)
"""
WAVES = """
def sinusoidal(length, width):
    p, i = torch.arange(length)[:, None], torch.arange(width // 2)
    a = p / 10000 ** ({})
    return {}
"""
PAIRED = "torch.stack([a.sin(), a.cos()], -1).flatten(1)"
ROTATE = """
def rotate(x, places):
    a = places[:, None] / 10000 ** (torch.arange(0, 10, 2) / 10) * {}
    u, v = x[:, ::2], x[:, 1::2]
    return torch.stack([{}, u * a.sin() + v * a.cos()], -1).flatten(1)
"""
ALIBI = """
def alibi(heads, length):
    p, h = torch.arange(length), torch.arange(heads)[:, None, None]
    return {}
"""
BALANCED = "def balanced_accuracy(p, t):\n    return {}\n"
FED = "def decoder_input(target, start):\n    s = torch.full_like(target[:, :1], start)\n    return {}\n"
LOSS = "def loss(logits, target):\n    return {}\n"
FIRST = "def first_loss(n):\n    return {}\n"

PLANTED: list[tuple[str, str, str, str]] = [
    (
        "lesson1",
        "attention",
        ATTENTION.format("(q @ k.mT / math.sqrt(11)).softmax(-2) @ v"),
        "over the queries",
    ),
    ("lesson1", "attention", ATTENTION.format("(q @ k.mT).softmax(-1) @ v"), "the scale is missing"),
    ("lesson1", "attention", ATTENTION.format("(q @ k.mT / 11).softmax(-1) @ v"), "by its square root"),
    ("lesson1", "attention", ATTENTION.format("(q @ k.mT / math.sqrt(11)) @ v"), "the softmax is missing"),
    ("lesson1", "attention", ATTENTION.format("(q @ k.mT).softmax(-1)"), "write the shape of every"),
    ("lesson1", "attention", ATTENTION.format("q * 0"), "in three lines"),
    (
        "lesson1",
        "causal_mask",
        MASK.format("torch.ones(n, n).tril(-1).bool()"),
        "must also see its own position",
    ),
    ("lesson1", "causal_mask", MASK.format("torch.ones(n, n).tril(1)"), "one position too many"),
    ("lesson1", "causal_mask", MASK.format("torch.ones(n, n).triu()"), "rows and columns are exchanged"),
    ("lesson1", "causal_mask", MASK.format("torch.ones(n, n).triu(1)"), "True and False are exchanged"),
    (
        "lesson1",
        "causal_mask",
        MASK.format("torch.full((n, n), -math.inf).triu(1)"),
        "minus infinity comes",
    ),
    ("lesson1", "masked_attention", MASKED.format("(s.softmax(-1) * visible) @ v"), "no longer sum to 1"),
    ("lesson1", "masked_attention", MASKED.format("(s * visible).softmax(-1) @ v"), "e^0 is 1"),
    ("lesson1", "masked_attention", MASKED.format("s.softmax(-1) @ v"), "the mask has no effect"),
    (
        "lesson1",
        "multi_head",
        MANY + "    z = attend(torn(q), torn(k), torn(v), K**-0.5)\n    return z.reshape(B, T, D) @ wo",
        "cuts through tokens",
    ),
    (
        "lesson1",
        "multi_head",
        MANY
        + "    z = attend(right(q), right(k), right(v), D**-0.5)\n    return z.transpose(1, 2).reshape(B, T, D) @ wo",
        "of one head, not of the model",
    ),
    (
        "lesson1",
        "multi_head",
        MANY + "    z = attend(right(q), right(k), right(v), K**-0.5)\n    return z.reshape(B, T, D) @ wo",
        "transpose the heads back",
    ),
    ("lesson1", "multi_head", MANY + "    return attend(q, k, v, D**-0.5) @ wo", "one wide head"),
    ("lesson1", "sharpest_head", "sharpest_head = 'decoder.0.self.1'", "heads count from 0"),
    ("lesson2", "entropy", ENTROPY.format("-(a * a.log()).sum(-1) / math.log(7)"), "0 log 0 counts as 0"),
    (
        "lesson2",
        "entropy",
        ENTROPY.format("torch.special.entr(a).sum(-1)"),
        "the largest possible value, ln",
    ),
    ("lesson2", "entropy", ENTROPY.format("-torch.special.entr(a).sum(-1) / math.log(7)"), "the sign"),
    (
        "lesson2",
        "weight_on",
        WEIGHT.format("(a * keys).mean((-1, -2))"),
        "sum the weights on the chosen keys",
    ),
    ("lesson2", "weight_on", WEIGHT.format("(a * keys).sum((-1, -2))"), "this sums over both"),
    ("lesson2", "partner_head", "partner_head = 'decoder.0.cross.0'", "a head of the decoder"),
    ("lesson2", "partner_head", "partner_head = 'encoder.1.self.0'", "the column 'partner'"),
    ("lesson2", "most_missed", "most_missed = 'encoder.9.self.0'", ""),
    ("lesson2", "harmless", "harmless = ['encoder.0.self.0']", "compare what is lost with 0.01"),
    ("lesson2", "harmless", "harmless = ['encoder.0.self.1']", "'less than 1 point' includes these"),
    ("lesson2", "harmless", "harmless = 'encoder.0.self.1'", "write a list of names in quotes"),
    ("lesson2", "together", "together = 0.99", "does not add up"),
    ("lesson2", "together", "together = 0.5", "run.evaluate(split='valid')"),
    ("lesson2", "together", "together = '3%'", "a share from 0 to 1"),
    ("lesson2", "removed", "removed = ['encoder.0.self.1']", "one head at a time"),
    (
        "lesson2",
        "removed",
        "removed = ['encoder.0.self.1', *(f'{s}.{h}' for s in ('encoder.1.self', 'decoder.0.cross', 'decoder.1.cross') for h in range(4) if s + str(h) != 'decoder.0.cross0')]",
        "they stand in for each other",
    ),
    ("lesson3", "another_pattern", "def another_pattern(a, v):\n    return a", "this is a itself"),
    ("lesson3", "another_pattern", "def another_pattern(a, v):\n    return a.flip(0)", "null space"),
    ("lesson3", "another_pattern", "def another_pattern(a, v):\n    return 2 * a", "a row of ones"),
    (
        "lesson3",
        "another_pattern",
        "def another_pattern(a, v):\n    return a - 1",
        "the first weight reaches 0",
    ),
    (
        "lesson3",
        "rollout",
        ROLLOUT.format("patterns", "A.mean(0) / 2 + I / 2", "R @ A"),
        "in the wrong order",
    ),
    (
        "lesson3",
        "rollout",
        ROLLOUT.format("patterns", "A.mean(0)", "A @ R"),
        "the residual connection is missing",
    ),
    ("lesson3", "rollout", ROLLOUT.format("patterns", "A.mean(0) + I", "A @ R"), "rows no longer sum to 1"),
    ("lesson3", "occlusion", OCCLUDE.format("", "cut = tokens.clone()", "f(cut) - f(tokens)"), "the sign"),
    (
        "lesson3",
        "occlusion",
        OCCLUDE.format("", "cut = tokens.clone()", "f(cut)"),
        "what is left without each token",
    ),
    (
        "lesson3",
        "occlusion",
        OCCLUDE.format("cut = tokens.clone()", "pass", "f(tokens) - f(cut)"),
        "work on a copy",
    ),
    (
        "lesson3",
        "deletion_curve",
        DELETE.format("[f(tokens)]", "False"),
        "the least important tokens go first",
    ),
    ("lesson3", "deletion_curve", DELETE.format("[]", "True"), "begin with f before any deletion"),
    ("lesson3", "attention_top", "attention_top = 99", "positions count from 0"),
    (
        "lesson4",
        "sinusoidal",
        WAVES.format("2 * i / width", "torch.cat([a.sin(), a.cos()], 1)"),
        "let them alternate",
    ),
    ("lesson4", "sinusoidal", WAVES.format("i / width", PAIRED), "here it is i / width"),
    ("lesson4", "rotate", ROTATE.format("1", "u * a.cos() + v * a.sin()"), "turning keeps lengths"),
    (
        "lesson4",
        "rotate",
        ROTATE.format("0", "u * a.cos() - v * a.sin()"),
        "multiply the angle by the place",
    ),
    (
        "lesson4",
        "rotate",
        "def rotate(x, places):\n    return x + places[:, None]",
        "turning keeps lengths",
    ),
    (
        "lesson4",
        "alibi",
        ALIBI.format("2.0 ** (-8 * (h + 1) / heads) * (p - p[:, None]).abs()"),
        "the sign",
    ),
    (
        "lesson4",
        "alibi",
        ALIBI.format("-(2.0 ** (-8 * h / heads)) * (p - p[:, None]).abs()"),
        "yours count from 0",
    ),
    ("lesson4", "alibi", ALIBI.format("2.0 ** (-8 * (h + 1) / heads) * (p - p[:, None])"), "|i - j|"),
    ("lesson4", "balanced_accuracy", BALANCED.format("(p == t).float().mean()"), "this is plain accuracy"),
    ("lesson4", "next_head", "next_head = 'encoder.0.self.9'", ""),
    ("lesson4", "without_it", "without_it = 1.0", "the accuracy with all heads"),
    ("lesson5", "first_loss", FIRST.format("math.log2(n)"), "this is in bits"),
    ("lesson5", "first_loss", FIRST.format("-math.log(n)"), "the sign"),
    ("lesson5", "decoder_input", FED.format("target"), "learns to copy"),
    ("lesson5", "decoder_input", FED.format("target[:, :-1]"), "one place is missing"),
    ("lesson5", "decoder_input", FED.format("torch.cat([target[:, 1:], s], 1)"), "shifted to the left"),
    ("lesson5", "decoder_input", FED.format("torch.cat([s * 0, target[:, :-1]], 1)"), "0 stands in front"),
    (
        "lesson5",
        "loss",
        LOSS.format("F.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=0)"),
        "0 is also a digit",
    ),
    (
        "lesson5",
        "loss",
        LOSS.format("F.cross_entropy(logits.flatten(0, 1).softmax(-1), target.flatten())"),
        "it is given probabilities",
    ),
    ("lesson5", "leading_zero", "leading_zero = 0.5005", "this counts operands from 0"),
    ("lesson5", "leading_zero", "leading_zero = 39.6", "not percent"),
    (
        "lesson5",
        "cures",
        "cures = {'a': {'epochs': 5000}, 'b': {'lr': 0.1}, 'c': {'lr': 0.1}}",
        "more epochs are not the cure",
    ),
    ("lesson5", "cures", "cures = {'a': {'lrr': 1}, 'b': {'lr': 0.1}, 'c': {'lr': 0.1}}", "--help"),
    (
        "lesson5",
        "cures",
        "cures = {'a': {'lr': 1, 'width': 8}, 'b': {'lr': 0.1}, 'c': {'lr': 0.1}}",
        "with one setting",
    ),
    ("lesson5", "kinds", "kinds = {'a': 'x', 'b': 'y'}", "fill in this blank"),
    ("lesson6", "my_task", "my_task = 3", "assign a function decorated"),
    (
        "lesson6",
        "my_task",
        "import random\n@al.task(symbols='01', classes=['0', '1'])\ndef my_task(rng):\n    return random.choice('01') * 5, '0'",
        "own-task.md",
    ),
]


@pytest.mark.parametrize(("lesson", "exercise", "source", "hint"), PLANTED)
def test_planted_mistakes_are_recognised(lesson: str, exercise: str, source: str, hint: str) -> None:
    found = feedback(lesson, exercise, source)
    assert not found.passed
    assert found.got
    assert found.expected
    assert hint in found.hint, found


def test_errors_of_the_students_code_have_their_line() -> None:
    source = "def attention(q, k, v):\n    scores = q @ k\n    return scores\n"
    found = feedback("lesson1", "attention", source)
    assert found.got.startswith(f"answers.py, line {HEAD.count(chr(10)) + 2}: RuntimeError: ")
    assert found.hint == "run this line by itself"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "x = 1\ny = nothing\n",
            "the answers cannot be run: answers.py, line 2: NameError: name 'nothing'",
        ),
        ("def f(:\n", "the answers cannot be run: answers.py, line 1: SyntaxError: "),
        ("import sys\nsys.exit(3)\n", "the answers cannot be run: answers.py, line 2: SystemExit: 3"),
        ("\0", "the answers cannot be run: "),
    ],
)
def test_answers_that_cannot_be_run_are_refused(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "answers.py").write_text(text)
    assert complaint("check", "lesson1", "answers.py", cwd=tmp_path).startswith(said)


def test_what_is_no_lesson_and_no_file_is_refused(tmp_path: Path) -> None:
    assert "'lesson22' is not a lesson of the course; did you mean" in complaint(
        "check", "lesson22", "answers.py", cwd=tmp_path
    )
    assert "there is no file 'none.py'" in complaint("check", "lesson1", "none.py", cwd=tmp_path)
    assert "cannot be read as Python" in complaint("check", "lesson1", ".", cwd=tmp_path)


def test_what_answers_print_does_not_mix_with_json(tmp_path: Path) -> None:
    (tmp_path / "answers.py").write_text("print('hello')\n")
    done = attnlab("check", "lesson1", "answers.py", "--json", cwd=tmp_path, code=1)
    assert json.loads(done.stdout)["passed"] == 0
    assert "hello" in done.stderr


def test_an_answer_may_be_written_otherwise() -> None:
    """A numpy array, other code, and numbers rounded to two digits pass as well."""
    other = "def causal_mask(n):\n    import numpy\n    return numpy.tri(n)\n"
    assert feedback("lesson1", "causal_mask", other).passed
    assert feedback("lesson5", "leading_zero", "leading_zero = 0.40").passed
    halves = (
        "def rotate(x, places):\n"  # pairs i and i + K/2, turned the other way round
        "    a = -places[:, None] / 10000 ** (torch.arange(5) / 5)\n"
        "    u, v = x[:, :5], x[:, 5:]\n"
        "    return torch.cat([u * a.cos() - v * a.sin(), u * a.sin() + v * a.cos()], 1)\n"
    )
    assert feedback("lesson4", "rotate", halves).passed


def test_comparing() -> None:
    right, mistake = torch.tensor([1.0, 2.0]), torch.tensor([2.0, 1.0])
    assert compare(right + 1e-6, right, {}, expected="", hint="") is None
    found = compare(mistake, right, {"turned": mistake}, expected="right", hint="look")
    assert found is not None
    assert (found.hint, found.got) == ("turned", "2.0000 at index (0,), where 1.0000 is right")
    found = compare(right * 3, right, {"turned": mistake}, expected="right", hint="look")
    assert found is not None
    assert found.hint == "look"
    assert largest_difference(right * torch.nan, right).startswith("nan at index (0,)")
    assert not alike(right, right[:1])


def test_patients_are_the_healthy_training_but_for_one_setting() -> None:
    for name, change in SICK.items():
        assert len(change) == 1
        assert all(f" {value}" in command_of(name) for value in (HEALTHY | change).values())
        assert patient_spec(name) != patient_spec("a" if name != "a" else "b")


@pytest.mark.parametrize("lesson", LESSONS)
def test_scripts_fill_45_minutes_and_exercises_stand_where_feedback_says(lesson: str) -> None:
    page = (COURSE / f"{lesson}.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+)-(\d+) \| (.*) \|$", page, re.MULTILINE)
    assert rows[0][0] == "0"
    assert rows[-1][1] == "45"
    assert all(before[1] == after[0] for before, after in pairwise(rows))
    for each in exercises_of(lesson):
        found = re.fullmatch(r"(exercise \d), minutes (\d+) to (\d+)", each.step)
        assert found
        (words,) = (words for start, end, words in rows if (start, end) == found.groups()[1:])
        assert f"**{found[1].capitalize()}**" in words
        assert f"`{each.name}" in page


@pytest.mark.slow
def test_python_in_the_lessons_runs() -> None:
    """Of all pages of ``docs/course``."""
    for lesson in LESSONS:
        page = (COURSE / f"{lesson}.md").read_text(encoding="utf-8")
        for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
            exec(compile(code.replace("examples=500", "examples=20"), lesson, "exec"), {})


@pytest.mark.parametrize("lesson", STEPS)
def test_steps_of_the_handouts_are_states_of_the_page(lesson: str) -> None:
    for step in STEPS[lesson]:
        state = PageState.read(step.fragment)
        question = state.question()
        assert state.pairs == step.state
        assert question is not None
        assert len(question.edits) == ("edits" in step.state)
    page = lesson_page(lesson, STEPS[lesson])
    assert page.count("<li>") == len(STEPS[lesson])
    assert f'href="{file_of(STEPS[lesson][0].run)}#run=zoo:' in page


@pytest.mark.parametrize("lesson", LESSONS)
def test_the_answer_key_is_of_these_solutions_and_steps(lesson: str) -> None:
    found = json.loads((COURSE.parent.parent / f"results/course/{lesson}.json").read_text())
    assert found["passed"] == found["exercises"] == len(exercises_of(lesson))
    assert found["processor_seconds_of_the_check"] < 60
    assert [each["fragment"] for each in found["steps"]] == [
        each.fragment for each in STEPS.get(lesson, ())
    ]
