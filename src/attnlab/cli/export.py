"""``attnlab export``: a model as a file for other programs."""

from attnlab.cli.output import print_json, print_text
from attnlab.cli.parsing import RunName
from attnlab.front.loading import load


def command(run: RunName, *, onnx: str, json: bool = False) -> None:
    """Write the model of a run as an ONNX graph, once onnxruntime computes the same with it as torch.

    An encoder-decoder becomes the graph of its forward pass: source and target so far in, logits of every
    next token out; greedy decoding calls it once a token. What the numbers stand for and how to decode is
    written in the file's metadata and in FILE.json next to it.

    Example: attnlab export zoo:adder --onnx adder.onnx

    Args:
        onnx: The file to write.
        json: Print what was compared as JSON.
    """
    found = load(run).export(onnx)
    if json:
        print_json(found)
        return
    inputs = ", ".join(f"{part.name} {tuple(part.shape)}" for part in found.inputs)
    print_text(f"{found.file}: {found.bytes:,} bytes, from {inputs} to logits")
    print_text(
        f"at {len(found.checks)} sizes at most {found.difference:.1g} from torch, in shares of the "
        f"largest logit; {found.tolerance:g} is allowed"
    )
    print_text(found.about)
    print_text(f"how to use it without attnlab: {found.instructions}")
