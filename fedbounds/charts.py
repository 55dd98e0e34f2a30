"""Figures: curves, panels and overlays, saved with their data and a manifest."""

from fedbounds.cli.report import report_paper, report_runs
from fedbounds.figures.charts.curves import panels
from fedbounds.figures.charts.paper_gallery import PaperGallery, draw_by_name
from fedbounds.figures.charts.picture import Curve, Picture, styled

__all__ = [
    "Curve",
    "PaperGallery",
    "Picture",
    "draw_by_name",
    "panels",
    "report_paper",
    "report_runs",
    "styled",
]
