"""Where an instruction came from: `metadata={...}` and the tables of stack frames to `Loc`, and `Loc` to metadata.

Imports the lexer and ir.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hilo.formats.hlo_text.lexer import quote
from hilo.ir.module import Loc

if TYPE_CHECKING:
    from hilo.formats.hlo_text.reader import Reader

MAX_CHAIN = 24  # frames of one location
_TABLES = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")


def parse_metadata(r: Reader) -> Loc | None:
    """`{op_name="..." source_file="..." source_line=3 stack_frame_id=2 ...}` as a location; None if it has none."""
    fields = _fields(r)
    place: Loc | None = None
    if isinstance(file := fields.get("source_file"), str) and file:
        line, col = fields.get("source_line", 0), fields.get("source_column", 0)
        place = Loc("file", file=file, line=_int(line), col=_int(col))
    elif frame := fields.get("stack_frame_id"):
        place = r.frames.get(_int(frame))
    name = fields.get("op_name")
    if isinstance(name, str) and name:
        return Loc("name", name=name, children=(place,) if place else ())
    return place


def _int(value: Any) -> int:
    return value if isinstance(value, int) else 0


def _fields(r: Reader) -> dict[str, Any]:
    """`{key=value key=value}`; strings and integers are kept, other values skipped."""
    fields: dict[str, Any] = {}
    r.expect("{")
    while not r.accept("}"):
        key = r.keyword("a field")
        r.expect("=")
        token = r.tokens[r.at]
        if token[:1] == '"':
            fields[key] = r.string()
        elif token.lstrip("-").isdecimal():
            fields[key] = r.integer()
        elif token in ("{", "[", "("):
            r.balanced()
        elif not r.take():
            raise r.expected("the '}' that closes the metadata")
        r.accept(",")
    return fields


def parse_tables(r: Reader) -> None:
    """The tables between the header and the first computation, into `r.frames`."""
    rows: dict[str, dict[int, Any]] = {name: {} for name in _TABLES}
    while (name := r.tokens[r.at]) in rows:
        r.at += 1
        table = rows[name]
        while r.tokens[r.at].isdecimal():
            number = r.integer()
            table[number] = r.string() if r.tokens[r.at][:1] == '"' else _fields(r)
    places = {n: _place(fields, rows["FileNames"]) for n, fields in rows["FileLocations"].items()}
    frames = {n: fields for n, fields in rows["StackFrames"].items() if isinstance(fields, dict)}
    for n in frames:
        if (loc := _frame(n, frames, places)) is not None:
            r.frames[n] = loc


def _frame(n: int, frames: dict[int, dict[str, Any]], places: dict[int, Loc | None]) -> Loc | None:
    """The place of a frame, called at that of its parent ... (the text numbers parents one higher, 1 is none)."""
    chain: list[Loc] = []
    while n in frames and len(chain) < MAX_CHAIN:
        if (place := places.get(_int(frames[n].get("file_location_id")))) is not None:
            chain.append(place)
        n = _int(frames[n].get("parent_frame_id")) - 1
    loc: Loc | None = None
    for place in reversed(chain):
        loc = place if loc is None else Loc("callsite", children=(place, loc))
    return loc


def _place(fields: Any, files: dict[int, Any]) -> Loc | None:
    if not isinstance(fields, dict):
        return None
    file = files.get(_int(fields.get("file_name_id")))
    if not isinstance(file, str):
        return None
    return Loc("file", file=file, line=_int(fields.get("line")), col=_int(fields.get("column")))


# -- printing -----------------------------------------------------------------------------------


def name_and_place(loc: object) -> tuple[str, Loc | None]:
    """The name of a location, "" if it has none, and the innermost place in a file."""
    name, place, stack = "", None, [loc] if isinstance(loc, Loc) else []
    while stack:
        x = stack.pop()
        if x.kind == "name" and not name:
            name = x.name
        if x.kind == "file" and place is None:
            place = x
        stack.extend(reversed(x.children))
    return name, place


def print_metadata(loc: object) -> str:
    """`{op_name="..." source_file="..." source_line=3}` of a location; "" if it says nothing."""
    name, place = name_and_place(loc)
    fields = [f"op_name={quote(name)}"] if name else []
    if place is not None:
        fields.append(f"source_file={quote(place.file)} source_line={place.line}")
        fields.extend([f"source_column={place.col}"] if place.col else [])
    return f"{{{' '.join(fields)}}}" if fields else ""
