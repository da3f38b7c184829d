"""Runs the benchmarks that are named, or all, and prints one table of ratios.

Usage: ``python tests/bench/run.py [kernel] [directories] [importing] ... [--json FILE]``
"""

from __future__ import annotations

import argparse
import importlib
import tempfile
from pathlib import Path

from report import Report

NAMES = ("kernel", "importing", "directories", "large_files", "http_worker")


def main() -> None:
    """Runs, prints, saves."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*NAMES, []], default=[])
    parser.add_argument("--json", type=Path, help="write the rows to this file as well")
    options = parser.parse_args()
    report = Report()
    for name in options.names or NAMES:
        with tempfile.TemporaryDirectory(prefix="svc-bench-", dir=".") as directory:
            importlib.import_module(name).run(report, Path(directory).resolve())
    report.print_table()
    if options.json is not None:
        report.save(options.json)


if __name__ == "__main__":
    main()
