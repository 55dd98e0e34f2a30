"""fedbounds table: rates of results side by side, for a related-work section."""

from __future__ import annotations

from pathlib import Path

import click

from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.output_files import Output, check_outputs, write_outputs
from fedbounds.cli import completion, options
from fedbounds.cli.options import OutputPath


@click.command("table")
@click.argument("keys", nargs=-1, metavar="[KEY[:FORM]]...", shell_complete=completion.keys)
@click.option("--class", "setting", metavar="PROPERTIES", help="Every theorem that covers this setting; see covers.")
@click.option("--latex", is_flag=True, help="Print the table as LaTeX, and its BibTeX entries.")
@click.option("--out", metavar="F.tex", type=OutputPath(), help="Write the LaTeX table, and the entries to F.bib.")
@options.force_option
@options.json_option
def table(keys: tuple[str, ...], setting: str | None, latex: bool, out: str | None, force: bool, as_json: bool) -> None:
    """Compare the rates of KEYs, or of all theorems of a class: rate, dominant term, speed-up, conditions, assumptions.

    The rate is in the number of rounds, at the prescribed step sizes, else at the best powers of it; all other
    constants stay fixed. Of several best powers, those with the fewest dominant terms are taken, then those with the
    larger first step size ("1 of k"). Terms that fall geometrically are printed as they are. The speed-up is linear if
    the bound falls with the number of participants as with the rounds; faster is suspicious. LaTeX tables of more than
    8 rows are longtables.

    \b
    fedbounds table --class "non-convex, full participation, local steps, bounded heterogeneity, bounded variance"
    fedbounds table fedau/corollary-4 tdcd/theorem-1 --out rates.tex
    """
    from fedbounds.bounds.comparison.rate_table import rate_table, table_of_class  # sympy takes its time

    if bool(keys) == bool(setting):
        raise FedboundsError("table needs KEYs or --class, e.g. --class 'non-convex, full participation', not both")
    outputs = []
    if out is not None:
        if Path(out).suffix != ".tex":
            raise FedboundsError(f"{out}: unknown ending; a table ends in .tex")
        outputs = [Output(Path(out)), Output(Path(out).with_suffix(".bib"))]
        check_outputs(outputs, force)
    found = table_of_class(setting) if setting else rate_table([options.split_key(word) for word in keys])
    write_outputs(outputs, [text.encode() for text in (f"{found.latex}\n", found.bibtex)][: len(outputs)], force)
    text = f"{found.latex}\n\n{found.bibtex}" if latex else "" if out else str(found)
    options.print_answer(as_json, "rates", found.to_dict(), lambda: text, [output.path for output in outputs])
