"""How a run trained: loss and accuracy over steps."""

from typing import Any

from matplotlib.figure import Figure

from attnlab.figures.style import BLUE, ORANGE, new_figure, styled


def curves_data(metrics: list[dict[str, Any]]) -> dict[str, Any]:
    """Columns of the logged steps and of the epochs; ``judged`` is the loss that chose the weights."""
    steps = [line for line in metrics if line["event"] == "step"]
    epochs = [line for line in metrics if line["event"] == "epoch"]
    return {
        "steps": {key: [line[key] for line in steps] for key in ("step", "loss", "exact_match", "lr")},
        "epochs": {
            key: [line[key] for line in epochs]
            for key in ("step", "epoch", "valid_loss", "valid_exact_match", "seconds")
        }
        | {"judged": [line.get("valid_objective", line["valid_loss"]) for line in epochs]},
    }


def draw_curves(data: dict[str, Any]) -> Figure:
    """Loss on a logarithmic axis, the share of right answers on a plain one."""
    steps, epochs = data["steps"], data["epochs"]
    figure = new_figure(9.0, 3.2)
    with styled():
        left, right = figure.subplots(1, 2)
        left.plot(steps["step"], steps["loss"], color=BLUE, label="training batches")
        left.plot(epochs["step"], epochs["valid_loss"], "o-", color=ORANGE, label="validation")
        left.set(yscale="log", xlabel="step", ylabel="cross-entropy", title="Loss")
        left.legend()
        right.plot(
            steps["step"], [100 * v for v in steps["exact_match"]], color=BLUE, label="training batches"
        )
        valid = [100 * value for value in epochs["valid_exact_match"]]
        right.plot(epochs["step"], valid, "o-", color=ORANGE, label="validation")
        right.set(ylim=(-2, 102), xlabel="step", ylabel="% wholly right", title="Right answers")
        right.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, borderaxespad=0)
    return figure
