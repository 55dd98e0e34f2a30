"""One function per figure, of those that need no training; Tables 1 and 2 and Figures 3 to 6 are not drawn yet."""

from __future__ import annotations

from dataclasses import dataclass

from fedbounds.bounds.errors import FedboundsError
from fedbounds.figures.paper_gallery import PaperGallery, draw_by_name
from fedbounds.figures.papers.fedmrn.bounds import operators, theorem_1, theorem_2
from fedbounds.figures.picture import Picture


@dataclass(frozen=True)
class Scale:
    """Exact moments on quadratics: nothing is trained, so that there is one scale.

    Args:
        iterations: of Theorem 1's runs.
        horizons: the T of Theorem 2's runs.
        points: sizes of updates.
    """

    iterations: int = 4000
    horizons: tuple[int, ...] = (16, 64, 256, 1024, 4096)
    points: int = 61

    @property
    def words(self) -> str:
        """Nothing is scaled down."""
        return "exact moments on quadratics"


def scale_of(dataset: str, network: str | None = None, full: bool = False) -> Scale:
    """The only scale.

    Raises:
        FedboundsError: a data set or a network was asked for.
    """
    if network is not None or dataset != Gallery.usual:
        raise FedboundsError("the figures of fedmrn are exact moments: they have no data set and no network")
    return Scale()


class Gallery(PaperGallery[Scale]):
    """The figures of this paper."""

    scale_of = staticmethod(scale_of)
    usual = "quadratics"


FIGURES = {
    "theorem-1": lambda gallery: theorem_1(gallery.scale.iterations),
    "theorem-2": lambda gallery: theorem_2(gallery.scale.horizons),
    "operators": lambda gallery: operators(gallery.scale.points),
}


def draw(gallery: Gallery, name: str) -> Picture:
    """One figure by name.

    Raises:
        FedboundsError: no such figure; names the nearest.
    """
    return draw_by_name("fedmrn", FIGURES, gallery, name)
