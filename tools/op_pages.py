"""Write docs/ops/: a page for every op, from the registry. `--check` only names the pages that are stale.

    PYTHONPATH=src python tools/op_pages.py
"""

from __future__ import annotations

import sys
from pathlib import Path

from hilo.cli.op_pages import index, page
from hilo.testing.pieces import all_ops

DIRECTORY = Path(__file__).parent.parent / "docs" / "ops"


def pages() -> dict[str, str]:
    """File names and what belongs into them."""
    ops = all_ops()
    return {"index.md": index(ops), **{f"{d.full_name}.md": page(d) for d in ops}}


def stale(directory: Path = DIRECTORY) -> list[str]:
    """The files of the directory that are not what the registry says, are not there, or belong to no op."""
    want = pages()
    have = {p.name: p.read_text(encoding="utf-8") for p in directory.glob("*.md")}
    return sorted(name for name in {*want, *have} if want.get(name) != have.get(name))


def main() -> int:
    old = stale()
    if "--check" in sys.argv:
        print("\n".join(old))
        return 1 if old else 0
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    want = pages()
    for name in old:
        if name in want:
            (DIRECTORY / name).write_text(want[name], encoding="utf-8")
        else:
            (DIRECTORY / name).unlink()
    print(f"{len(want)} pages, {len(old)} changed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
