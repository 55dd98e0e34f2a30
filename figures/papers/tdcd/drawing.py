"""One function per figure: of those that need runs, make what is missing, then draw."""

from __future__ import annotations

from fedbounds.figures.charts.paper_gallery import draw_by_name
from fedbounds.figures.charts.picture import Picture
from fedbounds.figures.papers.tdcd import experiments as ex
from fedbounds.figures.papers.tdcd import network, runs, tightness, trained
from fedbounds.figures.papers.tdcd.bounds import family, wall_clock


class Gallery(trained.TrainedGallery):
    """The figures of this paper at one scale, from runs kept in one directory of results.

    Args:
        results: where runs are kept.
        dataset: made (default), or original, from local files.
        data: the directory of the local files.
        network: another than the tasks' own, in every silo.
        workers: local processes.
        scale: another scale than the data's own.
        progress: called after every run, or worst case, with how many are there and how many there are in all.
        full: the paper's own numbers of clients, samples and iterations, where it says them.
    """

    scale_of = staticmethod(ex.scale_of)
    usual = "made"


FIGURES = {
    "wall-clock": lambda gallery: wall_clock(gallery.scale.points),
    "family": lambda gallery: family(),
    "theorem-1": lambda gallery: runs.theorem_1(),
    "misread": lambda gallery: runs.misread(),
    "rate": lambda gallery: runs.exact_rate(),
    "ratio": lambda gallery: runs.exact_ratio(),
    "network": network.NETWORKS.picture,
    "tightness": lambda gallery: tightness.picture(gallery.progress),
    **trained.FIGURES,
}


def draw(gallery: Gallery, name: str) -> Picture:
    """One figure by name.

    Raises:
        FedboundsError: no such figure; names the nearest.
    """
    return draw_by_name("tdcd", FIGURES, gallery, name)
