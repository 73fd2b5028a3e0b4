"""The structs of the PJRT C API as ctypes has them, read out of the header that the plugin is built from (api.h)."""

from __future__ import annotations

import ctypes
import functools
import re
from pathlib import Path
from typing import Any

import hilo.runtime

HEADERS = Path(hilo.runtime.__file__).parent / "native" / "pjrt"
_SCALARS: dict[str, Any] = {
    "size_t": ctypes.c_size_t, "intptr_t": ctypes.c_ssize_t, "int": ctypes.c_int, "int32_t": ctypes.c_int32,
    "uint32_t": ctypes.c_uint32, "int64_t": ctypes.c_int64, "bool": ctypes.c_bool, "float": ctypes.c_float,
}  # fmt: skip
_HEAD = "size_t struct_size; void *extensions;"


def _text() -> str:
    text = "\n".join((HEADERS / name).read_text() for name in ("api.h", "extensions.h"))
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)
    text = text.replace("\\\n", " ")
    text = re.sub(r"^\s*#define PJRT_HEAD.*$|^\s*#define PJRT_(?:BARE_)?ARGS.*$", "", text, flags=re.MULTILINE)
    return re.sub(r"\bPJRT_HEAD;", _HEAD, text)


def _until_closed(text: str, at: int) -> int:
    """Where the bracket that opens at `at` is closed."""
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] in "({") - (text[i] in ")}")
        if depth == 0:
            return i
    raise ValueError("an open bracket in the header")


class Abi:
    """`structs` by name without `pjrt_` ("client_create_args", "tiled"), `constants` by name without `PJRT_`, and
    `slots`: the functions of the table in order, with their places."""

    def __init__(self, text: str) -> None:
        self.structs: dict[str, type[ctypes.Structure]] = {}
        self.constants: dict[str, int] = {}
        for enum in re.findall(r"\benum\s*\{(.*?)\}", text, re.DOTALL):
            value = -1
            for item in filter(None, (part.strip() for part in enum.split(","))):
                name, _, given = item.partition("=")
                value = int(given) if given else value + 1
                self.constants[name.strip().removeprefix("PJRT_")] = value
        names = re.search(r"#define PJRT_FUNCTIONS\(F\)(.*)", text)
        assert names
        listed = re.findall(r"F\((\w+)\)", names[1])
        self.slots = {name: i for i, name in enumerate(["error_destroy", "error_message", *listed])}
        declaration = re.compile(r"\bstruct pjrt_(\w+)\s*\{|\bPJRT_(ARGS|BARE_ARGS)\((?!name)(\w+),")
        for found in declaration.finditer(text):
            if found[1]:
                opening = found.end() - 1
                name, body = found[1], text[opening + 1 : _until_closed(text, opening)]
            else:
                opening = text.index("(", found.start())
                head = _HEAD if found[2] == "ARGS" else "size_t struct_size;"
                name, body = f"{found[3]}_args", head + text[found.end() : _until_closed(text, opening)]
            if "PJRT_SLOT" not in body and "PJRT_FUNCTIONS" not in body:
                self.structs[name] = self._aggregate(ctypes.Structure, name, body)
        head = self._aggregate(ctypes.Structure, "api_head", _HEAD + "struct pjrt_version version;")
        self.table_offset = ctypes.sizeof(head)

    def _aggregate(self, base: type, name: str, body: str) -> Any:
        fields: list[tuple[str, Any]] = []
        anonymous: list[str] = []
        while body := body.strip().lstrip(";").strip():
            inner = re.match(r"union\s*\{", body)
            if inner:
                end = _until_closed(body, inner.end() - 1)
                union = self._aggregate(ctypes.Union, f"{name}_union", body[inner.end() : end])
                called, body = body[end + 1 :].split(";", 1)
                fields.append((called.strip() or f"union{len(fields)}", union))
                if not called.strip():
                    anonymous.append(fields[-1][0])
                continue
            end = self._semicolon(body)
            fields += self._declared(body[:end])
            body = body[end + 1 :]
        return type(name, (base,), {"_anonymous_": tuple(anonymous), "_fields_": fields})

    @staticmethod
    def _semicolon(body: str) -> int:
        depth = 0
        for i, c in enumerate(body):
            depth += (c in "({") - (c in ")}")
            if c == ";" and depth == 0:
                return i
        raise ValueError(f"a declaration without an end: {body}")

    def _declared(self, text: str) -> list[tuple[str, Any]]:
        if pointer := re.search(r"\(\*+(\w+)\)\s*\(", text):  # to a function
            return [(pointer[1], ctypes.c_void_p)]
        first, *others = text.split(",")
        spelled, name = re.fullmatch(r"\s*(.*?)(\w+)\s*", first, re.DOTALL).groups()  # type: ignore[union-attr]
        spelled = spelled.replace("const", "").strip()
        if "*" in spelled:
            kind: Any = ctypes.c_void_p
        elif spelled.startswith("struct pjrt_"):
            kind = self.structs[spelled.removeprefix("struct pjrt_")]
        else:
            kind = _SCALARS[spelled]
        return [(n.strip(), kind) for n in (name, *others)]


@functools.cache
def abi() -> Abi:
    return Abi(_text())
