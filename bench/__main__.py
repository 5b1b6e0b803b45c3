"""`python -m bench [NAME ...]`: run the measurements, all or the named ones, and print a table of each.

Figures are for reading, never for passing or failing: nothing here asserts a time.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import logging
import sys

from bench.table import machine

NAMES = {
    "cache": "how much of the prompts the model server's prefix cache serves",
    "overhead": "what a turn costs beyond the model",
    "sessions": "many people at once: memory, and the event loop while sessions end",
    "start": "how long a command takes to be there",
}


def main() -> int:
    """Run the measurements; returns the exit code."""
    described = "; ".join(f"{name}: {about}" for name, about in NAMES.items())
    parser = argparse.ArgumentParser(prog="python -m bench", description=described)
    parser.add_argument("names", nargs="*", metavar="NAME", help="which to run (default: all)")
    names = parser.parse_args().names or list(NAMES)
    if unknown := [name for name in names if name not in NAMES]:
        parser.error(f"no measurement is named {unknown[0]!r}; there are {', '.join(NAMES)}")
    logging.disable(logging.WARNING)  # the product's log lines are not what is measured
    for name in names:
        print(f"{name}: {NAMES[name]} …", file=sys.stderr, flush=True)
        for table in asyncio.run(importlib.import_module(f"bench.{name}").measure()):
            print(f"\n{table.markdown()}\n\n{machine()}", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
