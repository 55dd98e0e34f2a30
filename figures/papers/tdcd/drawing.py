"""The figures of the paper, by name."""

from __future__ import annotations

from fedbounds.figures.papers.tdcd import experiments as ex
from fedbounds.figures.papers.tdcd import network, runs, tightness, trained
from fedbounds.figures.papers.tdcd.bounds import family, wall_clock


class Gallery(trained.TrainedGallery):
    """The figures of this paper. Data: made (default), or original, from local files."""

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
