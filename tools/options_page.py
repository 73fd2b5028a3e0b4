"""Write docs/options.md from hilo.options. `--check` only says whether it is stale.

    PYTHONPATH=src python tools/options_page.py
"""

from __future__ import annotations

import sys
from pathlib import Path

from hilo.options import FAST_MATH, options

FILE = Path(__file__).parent.parent / "docs" / "options.md"


def text() -> str:
    """The page: each option with its variable, default and meaning."""
    lines = [
        "# Options",
        "",
        "Fields of `hilo.Options`; the variables change the defaults of `hilo.compile` and of all commands. Written by "
        "`python tools/options_page.py`.",
        "",
        "| Option | Variable | Default | Meaning |",
        "| --- | --- | --- | --- |",
    ]
    for name, option in options().items():
        lines.append(f"| `{name}` | `{option.variable}` | {_shown(option.default)} | {option.doc} |")
    lines += ["", "Names for `fast_math`:", ""]
    lines += [f"- `{name}`: {meaning}" for name, meaning in FAST_MATH.items()]
    return "\n".join(lines) + "\n"


def _shown(default: object) -> str:
    if default in ("", (), frozenset(), None):
        return "none"
    return f"`{default}`"


def main() -> int:
    stale = not FILE.exists() or FILE.read_text(encoding="utf-8") != text()
    if "--check" not in sys.argv:
        FILE.write_text(text(), encoding="utf-8")
        return 0
    return int(stale)


if __name__ == "__main__":
    sys.exit(main())
