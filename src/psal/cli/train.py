"""The commands ``psal train …`` and ``psal eval …``."""

import typer

from psal.cli.train_colorize import evaluate_colorize, train_colorize
from psal.cli.train_inpaint import evaluate_inpaint, train_inpaint
from psal.cli.train_upscale import evaluate_upscale, train_upscale

train = typer.Typer(
    no_args_is_help=True, help="Train a network through an attention layer. The same command resumes a run."
)
train.command("colorize")(train_colorize)
train.command("inpaint")(train_inpaint)
train.command("upscale")(train_upscale)

evaluate = typer.Typer(no_args_is_help=True, help="Measure a trained network.")
evaluate.command("colorize")(evaluate_colorize)
evaluate.command("inpaint")(evaluate_inpaint)
evaluate.command("upscale")(evaluate_upscale)
