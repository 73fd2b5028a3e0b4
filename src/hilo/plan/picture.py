"""Pictures of a program's memory: time from left to right, bytes from bottom to top. Imports plan.program and
plan.report."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from string import ascii_letters
from typing import Final

from hilo.ir.dims import typical
from hilo.plan.program import Buffer, Program, Step
from hilo.plan.report import origin, step_name
from hilo.plan.times import Times

COLUMNS: Final = 96  # characters
ROWS: Final = 24
WIDTH: Final = 1200  # points
HEIGHT: Final = 560
MARGIN: Final = 64
COLORS: Final = ("#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#76b7b2", "#d4a72c", "#b07aa1", "#9c755f", "#d37295")
BARS: Final = " ▁▂▃▄▅▆▇█"


def residents(program: Program, result: Buffer | None = None) -> list[Buffer]:
    """The temporaries with a place of their own in the arena, or in the memory of `result`, by first use."""
    own = (b for b in program.buffers if b.shares is None and b.first >= 0 and b.inside is result)
    return sorted(own, key=lambda b: (b.first, b.offset if isinstance(b.offset, int) else typical(b.offset)))


def last_step(program: Program) -> int:
    buffers = (*program.buffers, *program.arguments, *program.results)
    return max((b.last for b in buffers), default=0)


def alive(buffers: Iterable[Buffer], end: int) -> list[int]:
    """Bytes of `buffers` at each step 0..end."""
    change = [0] * (end + 2)
    for b in buffers:
        change[b.first] += typical(b.nbytes)
        change[b.last + 1] -= typical(b.nbytes)
    out = []
    now = 0
    for c in change[:-1]:
        now += c
        out.append(now)
    return out


def text(program: Program) -> list[str]:
    """The arena in letters, a bar for what is alive, and who is alive at the worst moment."""
    buffers = residents(program)
    if not buffers:
        return []
    end, size = last_step(program), max(typical(program.arena_size), 1)
    live = alive(buffers, end)
    peak = max(range(len(live)), key=live.__getitem__)
    per_column = -(-end // COLUMNS)
    columns = -(-end // per_column)
    at_peak = [b for b in buffers if b.first <= peak <= b.last]
    letter = {b: ascii_letters[k % 52] for k, b in enumerate(sorted(at_peak, key=lambda b: -typical(b.nbytes)))}
    grid = [["·"] * columns for _ in range(ROWS)]
    for b in sorted(buffers, key=lambda b: b in letter):  # those with names on top
        low, high = typical(b.offset), typical(b.offset) + max(typical(b.nbytes), 1)
        for row in range(low * ROWS // size, min(ROWS, -(-high * ROWS // size))):
            for column in range((max(b.first, 1) - 1) // per_column, (max(b.last, 1) - 1) // per_column + 1):
                grid[row][column] = letter.get(b, "░")
    most = max(live) or 1
    tops = [max(live[1 + c * per_column : 1 + (c + 1) * per_column], default=0) for c in range(columns)]
    lines = ["", f"the arena: {end} steps, {per_column} in a column; what has a letter is alive at step {peak}"]
    for row in reversed(range(ROWS)):
        label = f"{human(size * (row + 1) // ROWS):>9}" if row == ROWS - 1 or row % 6 == 5 else " " * 9
        lines.append(f"{label} │{''.join(grid[row])}")
    lines.append(f"{'alive':>9} │{''.join(BARS[-(-t * 8 // most)] for t in tops)}")
    lines.append(" " * 11 + " " * ((peak - 1) // per_column) + "^")
    lines += ["", f"alive at step {peak}, {step_name(steps(program).get(peak))}: {live[peak]:,} bytes"]
    for b, name in list(letter.items())[:20]:
        op, loc = origin(b)
        what = repr(b.type) if b.type is not None else "scratch"
        lines.append(f"  {name} {typical(b.nbytes):>14,} {what:24} steps {b.first}-{b.last}  {op} {loc}".rstrip())
    if len(letter) > 20:
        lines.append(f"    and {len(letter) - 20} more")
    return lines


def steps(program: Program) -> dict[int, Step]:
    """The steps by their numbers."""
    times = Times()
    times.walk(program.steps)
    return dict(times.steps)


def human(n: float) -> str:
    """A number of bytes, with a unit."""
    for unit in ("B", "KB", "MB", "GB"):
        if n < 1000 or unit == "GB":
            return f"{n:.0f} {unit}" if unit == "B" or n >= 100 else f"{n:.1f} {unit}"
        n /= 1000
    raise AssertionError


def svg(program: Program, *, assigned: bool = True) -> str:
    """The arena, and below it each result whose memory temporaries use, as one picture (SVG).

    Not `assigned`: the temporaries before they were given places, one above the other.
    """
    end = max(last_step(program), 1)
    temporaries = sorted((b for b in program.buffers if b.first >= 0), key=lambda b: b.first)
    offsets = {b: typical(b.offset) if assigned else 0 for b in temporaries}
    panels: list[tuple[str, list[Buffer], int, Buffer | None]] = [
        ("arena", residents(program), max(typical(program.arena_size), 1), None)
    ]
    for r in program.results if assigned else ():
        inside = [b for b in program.buffers if b.shares is None and (b.inside is r)]
        if inside:
            panels.append((f"result {r.index}", inside, max(typical(r.nbytes), 1), r))
    if not assigned:
        total = 0
        for b in temporaries:
            offsets[b] = total
            total += typical(b.nbytes)
        panels = [("before", temporaries, max(total, 1), None)]
    whole = sum(size for _, _, size, _ in panels)
    out: list[str] = []
    top = 40.0
    x = (WIDTH - MARGIN - 8) / end
    for name, buffers, size, result in panels:
        height = max(24.0, HEIGHT * size / whole)
        out.append(f'<text x="4" y="{top + 12:.1f}">{escape(name)}</text>')
        out.append(f'<text x="4" y="{top + 26:.1f}" fill="#666">{human(size)}</text>')
        out.append(_box(MARGIN, top, x * end, height, "none", "", "#bbb"))
        for b in buffers:
            low, tall = offsets[b] / size * height, max(typical(b.nbytes) / size * height, 0.5)
            left, wide = MARGIN + (b.first - 1) * x, max((b.last - b.first + 1) * x, 0.5)
            out.append(_box(left, top + height - low - tall, wide, tall, _color(b), _title(b), "#fff"))
            if wide > 60 and tall > 14:
                out.append(f'<text x="{left + 4:.1f}" y="{top + height - low - tall + 12:.1f}" fill="#fff" '
                           f'pointer-events="none">{escape(_label(b)[: int(wide / 7)])}</text>')  # fmt: skip
        if result is not None:  # from here on it holds what it is for
            left = MARGIN + (result.first - 1) * x
            title = f"result {result.index}, written at step {result.first}"
            out.append(_box(left, top, x * (end - result.first + 1), height, "#ddd", title, "#bbb"))
        elif buffers:
            live = alive(buffers, end)
            peak = max(range(len(live)), key=live.__getitem__)
            at = MARGIN + (peak - 0.5) * x
            out.append(f'<path d="M{at:.1f} {top - 6:.1f}V{top + height + 6:.1f}" stroke="#000" '
                       f'stroke-dasharray="3 3"/>')  # fmt: skip
            out.append(f'<text x="{at + 4:.1f}" y="{top - 8:.1f}">{human(live[peak])} alive</text>')
        top += height + 24
    needed = typical(program.arena_size) if assigned else sum(typical(b.nbytes) for b in temporaries)
    head = f"{program.name}: {human(needed)} of temporaries, {end} steps"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top:.0f}" '
        f'font-family="sans-serif" font-size="11">\n<text x="4" y="16" font-size="14">{escape(head)}</text>\n'
        + "\n".join(out)
        + "\n</svg>\n"
    )


def _box(x: float, y: float, width: float, height: float, fill: str, title: str, stroke: str) -> str:
    inner = f"<title>{escape(title)}</title>" if title else ""
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{fill}" stroke="{stroke}" '
        f'stroke-width="0.5">{inner}</rect>'
    )


def _color(b: Buffer) -> str:
    return "#999" if b.type is None else COLORS[sum(map(ord, origin(b)[0])) % len(COLORS)]


def _label(b: Buffer) -> str:
    return f"{repr(b.type) if b.type is not None else 'scratch'} {origin(b)[0]}"


def _title(b: Buffer) -> str:
    where = origin(b)[1]
    return f"{_label(b)}: {typical(b.nbytes):,} bytes, steps {b.first}-{b.last}{', ' if where else ''}{where}"
