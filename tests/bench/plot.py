"""The picture: one panel for each group of curves, medians with their spread, both axes logarithmic."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

os.environ["MPLBACKEND"] = "Agg"

from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from report import Curve, Panel, machine

_COLUMNS = 2
_UNITS = ("B", "KiB", "MiB", "GiB")


def draw(curves: Sequence[Curve], path: Path) -> None:
    """Draws curves into a PNG file, two panels a line."""
    panels = list(dict.fromkeys(curve.panel for curve in curves))
    lines = -(-len(panels) // _COLUMNS)
    columns = min(_COLUMNS, len(panels))
    size = (6.4 * columns, 4.6 * lines + 0.3)
    figure, axes = plt.subplots(lines, columns, figsize=size, squeeze=False, layout="constrained")
    for panel, axis in zip(panels, axes.flat, strict=False):
        _draw_panel(axis, panel, [curve for curve in curves if curve.panel == panel])
    for axis in list(axes.flat)[len(panels) :]:
        axis.remove()
    now = machine()
    figure.suptitle(
        f"svc bench, {now['time']}, {now['cores']} cores; bars: smallest to greatest", fontsize=10
    )
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _draw_panel(axis: Axes, panel: Panel, curves: Sequence[Curve]) -> None:
    for number, curve in enumerate(curves):
        xs = [point.x for point in curve.points]
        medians = [point.y.median for point in curve.points]
        below = [point.y.median - point.y.low for point in curve.points]
        above = [point.y.high - point.y.median for point in curve.points]
        style = "-" if curve.label.startswith("svc") or not _has_peers(curves) else "--"
        marker = "osD^v"[number % 5]
        bars = axis.errorbar(xs, medians, yerr=[below, above], capsize=2.5, elinewidth=1, linestyle=style)
        bars.lines[0].set(marker=marker, markersize=5, label=curve.label)
    places = sorted({point.x for curve in curves for point in curve.points})
    axis.set(xscale="log", yscale="log", title=panel.title, xlabel=panel.x, ylabel=panel.y)
    shown = places[:: 1 + len(places) // 8]
    axis.set_xticks(shown, [_bytes(place) if panel.sizes else _count(place) for place in shown])
    axis.tick_params(axis="x", which="minor", bottom=False)
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=20))
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _count(value)))
    axis.yaxis.set_minor_formatter(NullFormatter())
    axis.grid(alpha=0.3)
    axis.legend(fontsize=9)


def _has_peers(curves: Sequence[Curve]) -> bool:
    return any(curve.label.startswith("svc") for curve in curves)


def _count(value: float) -> str:
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


def _bytes(value: float) -> str:
    unit = 0
    while value >= 1024 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{value:g} {_UNITS[unit]}"
