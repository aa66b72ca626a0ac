"""How training images are altered before a model sees them."""

from dataclasses import dataclass

from attnlab.spec.rules import require


@dataclass(frozen=True, kw_only=True)
class Augment:
    """Every training image is altered anew at each step, by amounts drawn uniformly up to these limits."""

    shift: float = 0.0
    """Pixels to each side."""
    rotate: float = 0.0
    """Degrees to each side."""
    scale: float = 0.0
    """Share of the size, larger or smaller."""
    elastic: float = 0.0
    """Pixels by which a smooth random field moves parts of the image (Simard et al., 2003)."""

    def __post_init__(self) -> None:
        for name, most in (("shift", 28), ("rotate", 180), ("scale", 0.9), ("elastic", 28)):
            value = getattr(self, name)
            require(0 <= value <= most, f"task.augment.{name}", value, f"from 0 to {most}")

    @property
    def any(self) -> bool:
        """Whether there is anything to do."""
        return max(self.shift, self.rotate, self.scale, self.elastic) > 0
