"""Random changes to training images, each a function of one random word, independent of batching."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from fedbounds.bounds.errors import FedboundsError, unknown_name
from fedbounds.bounds.inputs.checks import quote
from fedbounds.empirical.runtime.counter_rng import uniforms

_SHARPNESS, _BITS_KEPT, _BRIGHTNESS, _HUE = 2, 2, 0.05, 0.05


@dataclass(frozen=True)
class Augmentation:
    """A list of operations, applied in their order to images of bytes.

    | name | operation |
    |---|---|
    | `crop` | a random window of the image's own size, after padding in black with an eighth of the side (4 of 32) |
    | `flip` | left becomes right, with probability 1/2 |
    | `sharpness` | with probability 1/2, twice the image minus its smoothed version |
    | `jitter` | brightness times 0.95 to 1.05, then the hue turned by -0.05 to 0.05 of the circle |
    | `posterize` | with probability 1/2, only the two highest bits of every value are kept |
    | `equalize` | with probability 1/2, the histogram of every channel is made as flat as it can be |

    Source: Wang & Ji 2024, Appendix C.2, with the parameters of the authors' public code. Unlike there, every sample
    has its own draws, crops are padded in black, and brightness comes before hue.
    """

    operations: tuple[str, ...] = ()  # their names

    def __post_init__(self) -> None:
        if isinstance(self.operations, str) or not isinstance(self.operations, Sequence):
            given = quote(self.operations)
            raise FedboundsError(f"augmentation = {given} must be a list of names, as ['crop', 'flip']")
        for name in self.operations:
            if not isinstance(name, str) or name not in _OPERATIONS:
                raise unknown_name("augmentation", str(name), _OPERATIONS)
        if len(set(self.operations)) < len(self.operations):
            raise FedboundsError(f"augmentation = {quote(list(self.operations))} names an operation twice")
        object.__setattr__(self, "operations", tuple(self.operations))

    def check_image(self, image: tuple[int, int, int]) -> None:
        """Refuse images (channels, height, width) without colors where the operations need them."""
        for name in self.operations:
            if name not in ("crop", "flip") and image[0] != 3:
                raise FedboundsError(f"augmentation {name!r} needs images of 3 channels (colors), not of {image[0]}")

    def apply(self, images: Tensor, words: Tensor) -> Tensor:
        """The images of one stochastic gradient: bytes `(..., C, H, W)` and a word each, `(...)` -> like the images."""
        flat, own = images.flatten(0, -4), words.flatten()
        for name in self.operations:
            purpose = 1 + list(_OPERATIONS).index(name)
            flat = _OPERATIONS[name](flat, uniforms(own, purpose, 2))
        return flat.view(images.shape)


def crop(images: Tensor, draws: Tensor) -> Tensor:
    """A window of the image's size at a random place of the padded image: `(b, C, H, W)`, draws `(b, 2)`."""
    b, channels, height, width = images.shape
    padding = (max(1, height // 8), max(1, width // 8))
    padded = torch.nn.functional.pad(images, (padding[1], padding[1], padding[0], padding[0]))
    top, left = ((draws[:, k] * (2 * padding[k] + 1)).long() for k in (0, 1))
    rows = top[:, None] + torch.arange(height, device=images.device)
    columns = left[:, None] + torch.arange(width, device=images.device)
    samples = torch.arange(b, device=images.device)[:, None, None, None]
    planes = torch.arange(channels, device=images.device)[None, :, None, None]
    return padded[samples, planes, rows[:, None, :, None], columns[:, None, None, :]]


def flip(images: Tensor, draws: Tensor) -> Tensor:
    """Mirrored left to right where the first draw is below 1/2."""
    return _where(draws, images.flip(3), images)


def sharpen(images: Tensor, draws: Tensor) -> Tensor:
    """Twice the image minus its smoothed version, (all nine neighbors + 4 times the pixel) / 13, not at the border."""
    wide = images.to(torch.int32)
    smooth = wide.clone()
    h, w = images.shape[2] - 2, images.shape[3] - 2
    total = sum(wide[..., i : i + h, j : j + w] for i in range(3) for j in range(3)) + 4 * wide[..., 1:-1, 1:-1]
    smooth[..., 1:-1, 1:-1] = (total + 6) // 13
    sharp = (_SHARPNESS * wide - (_SHARPNESS - 1) * smooth).clamp(0, 255)
    return _where(draws, sharp.to(torch.uint8), images)


def jitter(images: Tensor, draws: Tensor) -> Tensor:
    """Brightness times a random factor, then a random turn of the hue; values are cut off, not rounded."""
    factor = 1 + _BRIGHTNESS * (2 * draws[:, 0, None, None, None] - 1)
    bright = (images.double() * factor).clamp(0, 255).floor() / 255
    return (turn_hue(bright, _HUE * (2 * draws[:, 1, None, None] - 1)) * 255.999).floor().to(torch.uint8)


def turn_hue(colors: Tensor, turn: Tensor) -> Tensor:
    """Colors in [0, 1], `(b, 3, H, W)`, with `turn` (b, 1, 1) added to their hue, a fraction of the circle."""
    red, green, blue = colors.unbind(1)
    value, low = colors.amax(1), colors.amin(1)
    spread = value - low
    safe = spread.where(spread > 0, torch.ones_like(spread))
    from_red, from_green, from_blue = (green - blue) / safe, (blue - red) / safe + 2, (red - green) / safe + 4
    hue = from_red.where(value == red, from_green.where(value == green, from_blue)) / 6
    sixth = (hue + turn).remainder(1) * 6
    # the wheel: each channel falls from value to low at its own distance on the circle
    channels = [(n + sixth).remainder(6) for n in (5, 3, 1)]
    return torch.stack([value - spread * torch.minimum(k, 4 - k).clamp(0, 1) for k in channels], dim=1)


def posterize(images: Tensor, draws: Tensor) -> Tensor:
    """Only the two highest bits of every value."""
    return _where(draws, images & (256 - 2 ** (8 - _BITS_KEPT)), images)


def equalize(images: Tensor, draws: Tensor) -> Tensor:
    """A table of values per channel that makes its histogram flat: cumulative counts in steps of 1/255 of the pixels
    that are not in the last occupied bin; a channel without a whole step stays as it is."""
    b, channels, height, width = images.shape
    values = images.flatten(2).long()
    counts = torch.zeros(b, channels, 256, dtype=torch.int64, device=images.device)
    counts.scatter_add_(2, values, torch.ones_like(values))
    last = counts.gather(2, values.amax(2, keepdim=True))
    step = (height * width - last) // 255
    below = counts.cumsum(2) - counts
    table = ((below + step // 2) // step.clamp(min=1)).clamp(0, 255)
    flat = table.gather(2, values).where(step > 0, values)
    return _where(draws, flat.view(images.shape).to(torch.uint8), images)


def _where(draws: Tensor, changed: Tensor, images: Tensor) -> Tensor:
    return changed.where(draws[:, 0, None, None, None] < 0.5, images)


_OPERATIONS: Mapping[str, Callable[[Tensor, Tensor], Tensor]] = {
    "crop": crop,
    "flip": flip,
    "sharpness": sharpen,
    "jitter": jitter,
    "posterize": posterize,
    "equalize": equalize,
}
