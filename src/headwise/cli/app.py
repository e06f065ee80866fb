"""The commands and their options."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from headwise._version import __version__
from headwise.cli.applications import commands as applications
from headwise.cli.errors import UserError, end_with_reader, one_line_errors
from headwise.cli.fetch import commands as fetching
from headwise.cli.options import is_run, number, one_text, whole
from headwise.cli.recognition import commands as recognition
from headwise.cli.study import study

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _say_version(asked: bool) -> None:
    if asked:
        typer.echo(f"headwise {__version__}")
        raise typer.Exit


@app.callback()
def headwise(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", callback=_say_version, is_eager=True),
    ] = False,
) -> None:
    """Multi-head attention, visible head by head."""


@app.command()
def see(
    text: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TEXT|FILE|- or RUN INPUT",
            help="A text in quotes, a text file, or - for standard input; or the folder of a trained run and "
            "what it reads: a text, an image, a wav file.",
        ),
    ] = None,
    model: Annotated[
        str, typer.Option(help="minilm, or a folder with a BERT in safetensors format.")
    ] = "minilm",
    question: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Of a run of question answering: what is asked of the text."),
    ] = None,
    beam: Annotated[
        int | None,
        typer.Option(parser=whole, metavar="N", help="Of a run that writes: hypotheses of the search; 4."),
    ] = None,
    invert: Annotated[
        bool, typer.Option("--invert", help="Of a run of vision: exchange light and dark first.")
    ] = False,
    checkpoint: Annotated[
        str, typer.Option(metavar="WHICH", help="Of a run: best, last, or average.")
    ] = "best",
    layer: Annotated[
        int | None, typer.Option(parser=whole, metavar="N", help="Only this layer, counted from 0.")
    ] = None,
    head: Annotated[
        int | None, typer.Option(parser=whole, metavar="N", help="Only this head, counted from 0.")
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Where to write the HTML report; headwise-report.html if not given."
        ),
    ] = None,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print JSON alone; the report is written only where --out names it."),
    ] = False,
    stride: Annotated[
        int | None,
        typer.Option(parser=whole, metavar="N", help="Read a long text in windows, this many tokens apart."),
    ] = None,
    open_report: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the report in a browser.")
    ] = False,
) -> None:
    """Show what every head of a BERT does with a text, or of a trained run with its input: tables here, and a
    report in HTML."""
    with one_line_errors():
        end_with_reader()
        if is_run(text):
            if stride is not None or model != "minilm":
                raise UserError("--model and --stride are for a BERT: leave them out where a run is shown")
            from headwise.cli.see_run import Options, see_run

            see_run(
                text or [],
                Options(question=question, beam=beam, invert=invert, checkpoint=checkpoint),
                layer=layer,
                head=head,
                out=out,
                as_json=as_json,
                open_report=open_report,
            )
            return
        if question is not None or beam is not None or invert or checkpoint != "best":
            raise UserError(
                "--question, --beam, --invert and --checkpoint are for a run: give its folder first"
            )
        from headwise.cli.see import see as command

        command(
            one_text(text),
            model=model,
            layer=layer,
            head=head,
            out=out,
            as_json=as_json,
            stride=stride,
            open_report=open_report,
        )


@app.command()
def trace(
    batch: Annotated[int, typer.Option(parser=whole, metavar="N", help="Texts at once.")] = 30,
    length: Annotated[int, typer.Option(parser=whole, metavar="N", help="Tokens of each text.")] = 5,
    input_dim: Annotated[
        int | None,
        typer.Option(parser=whole, metavar="N", help="Width of what comes in. That of d-model if not given."),
    ] = None,
    d_model: Annotated[int, typer.Option(parser=whole, metavar="N", help="Width of the model.")] = 512,
    heads: Annotated[int, typer.Option(parser=whole, metavar="N", help="Number of heads.")] = 8,
    kv_heads: Annotated[
        int | None,
        typer.Option(parser=whole, metavar="N", help="Number of key/value heads, if not heads."),
    ] = None,
    memory_length: Annotated[
        int | None,
        typer.Option(parser=whole, metavar="N", help="Cross-attention to a memory of this many tokens."),
    ] = None,
    causal: Annotated[bool, typer.Option("--causal", help="No token attends to a later one.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON alone.")] = False,
) -> None:
    """Follow one call of multi-head attention: the shape, parameters, FLOPs and bytes of each step."""
    with one_line_errors():
        end_with_reader()
        from headwise.cli.steps import trace_layer

        found = trace_layer(
            batch=batch,
            length=length,
            input_dim=input_dim,
            d_model=d_model,
            heads=heads,
            kv_heads=kv_heads,
            memory_length=memory_length,
            causal=causal,
        )
        typer.echo(json.dumps(found.to_dict(), indent=2) if as_json else str(found))


@app.command()
def explain(
    batch: Annotated[int, typer.Option(parser=whole, metavar="N", help="Texts at once.")] = 1,
    length: Annotated[
        int, typer.Option(parser=whole, metavar="N", help="Queries (and keys) of each text.")
    ] = 512,
    memory_length: Annotated[
        int | None, typer.Option(parser=whole, metavar="N", help="Keys, where they are others than queries.")
    ] = None,
    heads: Annotated[int, typer.Option(parser=whole, metavar="N", help="Number of heads.")] = 8,
    kv_heads: Annotated[
        int | None,
        typer.Option(parser=whole, metavar="N", help="Number of key/value heads, if not heads."),
    ] = None,
    d_k: Annotated[int, typer.Option(parser=whole, metavar="N", help="Width of queries and keys.")] = 64,
    d_v: Annotated[
        int | None, typer.Option(parser=whole, metavar="N", help="Width of values. That of d-k if not given.")
    ] = None,
    dtype: Annotated[str, typer.Option(help="float32, float64, float16 or bfloat16.")] = "float32",
    device: Annotated[str, typer.Option(help="cpu, cuda, ...")] = "cpu",
    causal: Annotated[bool, typer.Option("--causal", help="No token attends to a later one.")] = False,
    window: Annotated[
        int | None,
        typer.Option(parser=whole, metavar="N", help="Only this many tokens before each one, and itself."),
    ] = None,
    softcap: Annotated[
        float | None,
        typer.Option(parser=number, metavar="X", help="Scores are kept between this and its negative."),
    ] = None,
    dropout: Annotated[
        float, typer.Option(parser=number, metavar="X", help="Share of the weights that is set to 0.")
    ] = 0.0,
    grad: Annotated[bool, typer.Option("--grad/--no-grad", help="Will gradients be asked for?")] = False,
) -> None:
    """Say which kernel runs for given sizes, and why each other one does not. Nothing is computed."""
    with one_line_errors():
        end_with_reader()
        from headwise.cli.kernels import explain_sizes

        typer.echo(
            explain_sizes(
                batch=batch,
                length=length,
                memory_length=memory_length,
                heads=heads,
                kv_heads=kv_heads,
                d_k=d_k,
                d_v=d_v,
                dtype=dtype,
                device=device,
                causal=causal,
                window=window,
                softcap=softcap,
                dropout=dropout,
                grad=grad,
            )
        )


@app.command()
def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON alone.")] = False,
) -> None:
    """Say what this machine and this installation have to compute attention with."""
    with one_line_errors():
        end_with_reader()
        from headwise.cli.doctor import complain
        from headwise.cli.doctor import doctor as command

        typer.echo(command(as_json=as_json))
        complain()


@app.command()
def parameters(
    row: Annotated[
        str, typer.Argument(help='base, big, or another row of the paper\'s table 3 ("B d_k=16"), or all.')
    ] = "base",
    vocab: Annotated[int, typer.Option(parser=whole, metavar="N", help="Tokens of the vocabulary.")] = 37_000,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON alone.")] = False,
) -> None:
    """Count the parameters of the paper's models, part by part, beside what the paper prints."""
    with one_line_errors():
        from headwise.cli.parameters import parameters as command

        command(row, vocab=vocab, as_json=as_json)


@app.command()
def curves(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="Folders of runs; several are compared.")
    ],
    out: Annotated[
        Path | None, typer.Option(help="Where to; .png and .svg are written. [default: curves in the run]")
    ] = None,
) -> None:
    """Draw the learning curves of a run, as PNG and SVG."""
    with one_line_errors():
        from headwise.cli.curves import curves as command

        command(runs, out=out)


app.add_typer(applications)
app.add_typer(recognition)
app.add_typer(fetching)
app.add_typer(study, name="study")


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(f"headwise {__version__}")
