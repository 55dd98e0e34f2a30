"""Figures: curves, panels and overlays, saved with their data and a manifest."""

from fedbounds.figures.charts.curves import panels as panels
from fedbounds.figures.charts.paper_gallery import PaperGallery as PaperGallery
from fedbounds.figures.charts.paper_gallery import draw_by_name as draw_by_name
from fedbounds.figures.charts.picture import Curve as Curve
from fedbounds.figures.charts.picture import Picture as Picture
from fedbounds.figures.charts.picture import styled as styled
from fedbounds.figures.report.papers import report_paper as report_paper
from fedbounds.figures.report.runs import report_runs as report_runs
