"""``python -m psal.cli``, as torchrun needs it."""

from psal.cli.main import main

main()
