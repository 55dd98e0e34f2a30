"""fedbounds certify: the proof of a form as a file that a stand-alone checker verifies."""

from __future__ import annotations

import json
from pathlib import Path

import click

from fedbounds.bounds.audit import certificate_checker as checker
from fedbounds.bounds.audit.certificates import certificate
from fedbounds.bounds.audit.claim_set import ClaimSet
from fedbounds.bounds.errors import FedboundsError
from fedbounds.bounds.inputs.output_files import Output, check_outputs, write_output
from fedbounds.bounds.theory.registry import load
from fedbounds.cli.options import OutputPath, emit, force_option, form_option, json_option, key_argument


@click.command("certify")
@key_argument
@form_option
@click.option("--out", metavar="F", type=OutputPath(), help="Write the certificate to this .json file.")
@force_option
@json_option
def certify(key: str, form: str | None, out: str | None, force: bool, as_json: bool) -> None:
    """Write the proof of the result KEY as a certificate, and check it with exact fractions.

    The output names the checker: one file that needs only Python, so that anyone can check the certificate.

    \b
    fedbounds certify arbitrary-participation/theorem-3.1 --form explicit --out proof.json
    """
    outputs = [Output(Path(out))] if out else []
    check_outputs(outputs, force)
    result = load(key)
    claim = f"{result.key}[{result.form(form).name}]"
    found = certificate(ClaimSet.of(result.paper), claim)
    try:
        verified = checker.checked(json.loads(json.dumps(found)))
    except checker.Refused as error:
        raise FedboundsError(f"the checker rejects the certificate of {claim}: {error}") from error
    for output in outputs:
        write_output(output, json.dumps(found, indent=1, ensure_ascii=False).encode(), force)
    statement = found["statement"]
    if as_json:
        document = {"claim": claim, "steps": len(found["steps"]), "trusted": verified.believed, "statement": statement}
        emit("certify", {**document, "file": str(out) if out else None, "checker": checker.__file__})
        return
    click.echo(f"{claim}: {verified.verdict}")
    click.echo(f"{statement['measure']}\n  <= {statement['right']}")
    for name in statement["conditions"]:
        click.echo(f"  where {name}")
    for name, number in found["numbers"].items():
        click.echo(f"  with {name} = {number['is']}")
    click.echo(f"assumed: {', '.join(statement['assumptions'])}")
    click.echo(f"trusted: {len(verified.believed)} readings of these and of the algorithm, which the checker lists")
    if out:
        click.echo(f"written {out}; to check it: python {checker.__file__} {out}")
