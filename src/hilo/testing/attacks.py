"""Inputs made to hurt: by depth, by size, by numbers, by names. Imports the programs, and bytecode's pieces.

`ATTACKS[name]()` is an input. Each must end in a result or in `Error`, in seconds and in bounded memory, through all of
`fuzz_worker.examine`. They stand for what random changes rarely reach: long chains, large modules, huge declared sizes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from hilo.testing import attack_programs as p
from hilo.testing.attack_messages import MESSAGES
from hilo.testing.attack_programs import DEEP, attribute, constant, identity, located, nested, with_type

Make = Callable[[], str]

_DEPTH: Final[dict[str, Make]] = {
    "nested array attribute": lambda: attribute(nested("[", "1", "]")),
    "nested dictionary attribute": lambda: attribute(nested("{a = ", "1", "}")),
    "nested opaque attribute": lambda: attribute(nested("#a.b<", "1", ">")),
    "nested attribute never closed": lambda: attribute("[" * DEEP),
    "nested tuple type": lambda: with_type(nested("tuple<", "tensor<f32>", ">")),
    "nested tuple type, 40 deep": lambda: with_type(nested("tuple<", "tensor<f32>", ">", 40)),
    "nested complex type": lambda: with_type(f"tensor<{nested('complex<', 'f32', '>')}>"),
    "nested opaque type": lambda: with_type(nested("!a.b<", "x", ">")),
    "nested function type": lambda: attribute(nested("() -> (", "tensor<f32>", ")")),
    "nested dense": lambda: constant(nested("[", "1.0", "]"), "tensor<f32>"),
    "nested location": lambda: located(nested("callsite(", "unknown", " at unknown)")),
    "nested fused location": lambda: located(nested("fused[", "unknown", "]")),
    "nested regions, 100k": lambda: p.nested_ifs(DEEP),
    "nested regions, 60": lambda: p.nested_ifs(60),
    "nested regions, 20": lambda: p.nested_ifs(20),
    "nested loops, 20k": lambda: p.nested_loops(20_000),
    "nested loops, 40": lambda: p.nested_loops(40),
    "nested modules": lambda: nested("module {", "", "}"),
    "nested quantized scales": lambda: with_type(
        f"tensor<4x!quant.uniform<i8:f32:{{0:1}}, {nested('{', '1.0', '}')}>>"
    ),
    "1000 loops": lambda: p.many_loops(1000),
    "calls, 10k deep": lambda: p.calls(10_000),
    "calls in a ring": lambda: p.calls(100, ring=True),
    "a call of itself": lambda: p.calls(1, ring=True),
    "calls that double, 40 deep": lambda: p.calls(40, twice=True),
    "calls that double, 16 deep": lambda: p.calls(16, twice=True),
    "aliases that double": lambda: p.aliases("#a", "[1, 2]", "[{0}, {0}]", 60) + attribute("#a60"),
    "aliases in a chain": lambda: p.aliases("#a", "1", "{}", DEEP) + attribute(f"#a{DEEP}"),
    "an alias of itself": lambda: "#a = [#a]\n" + attribute("#a"),
    "type aliases that double": lambda: p.aliases("!t", "tensor<f32>", "tuple<{0}, {0}>", 60) + with_type("!t60"),
    "type aliases in a chain": lambda: p.aliases("!t", "tensor<f32>", "tuple<{}>", DEEP) + with_type(f"!t{DEEP}"),
    "a type alias of itself": lambda: "!t = tuple<!t>\n" + with_type("!t"),
    "location aliases that double": lambda: (
        p.aliases("#l", "loc(unknown)", "loc(fused[{0}, {0}])", 60) + located("#l60")
    ),
    "location aliases in a chain": lambda: (
        p.aliases("#l", "loc(unknown)", "loc(callsite({0} at unknown))", DEEP) + located(f"#l{DEEP}")
    ),
}

_SIZE: Final[dict[str, Make]] = {
    "30k ops": lambda: p.chain(30_000, "add {}, %a", "multiply {}, {}", "tanh {}"),
    "100k ops": lambda: p.chain(100_000, "add {}, %a", "multiply {}, {}", "tanh {}"),
    "3k adds": lambda: p.chain(3000, "add {}, %a"),
    "3k elementwise and index-moving ops": lambda: p.turned(3000),
    "doubling concatenations": lambda: p.doubling(58),
    "doubling concatenations to 16 GiB": lambda: p.doubling(30),
    "temporaries of 40 TB": lambda: p.matrices(3_200_000),
    "temporaries of 400 GB": lambda: p.matrices(320_000),
    "temporaries beyond 64 bits": lambda: p.matrices(1 << 33),
    "a splat of 40 TB": lambda: constant("1.0", "tensor<9999999999999xf32>"),
    "a splat beyond 64 bits": lambda: constant("1.0", "tensor<9999999999x9999999999x9999999999xf32>"),
    "a splat of a size that is no i64": lambda: constant("1.0", "tensor<99999999999999999999999999xf32>"),
    "a splat of 4 GB": lambda: constant("1.0", "tensor<1000000000xf32>"),
    "a splat of 40 TB of i4": lambda: constant("1", "tensor<9999999999999xi4>"),
    "a splat of 40 TB of c64": lambda: constant("(1.0, 2.0)", "tensor<9999999999999xcomplex<f32>>"),
    "a list that is too short for its type": lambda: constant("[1.0, 2.0]", "tensor<9999999999999xf32>"),
    "hex that is too short for its type": lambda: constant('"0x0000803F00008040"', "tensor<9999999999999xf32>"),
    "an empty list of 40 TB": lambda: constant("[]", "tensor<0x9999999999999xf32>"),
    "a size with 10k digits": lambda: with_type(f"tensor<{'9' * 10_000}xf32>"),
    "a number with a million digits": lambda: constant("9" * 1_000_000, "tensor<4xi32>"),
    "a float with a million digits": lambda: constant("1." + "9" * 1_000_000, p.T),
    "an exponent with many digits": lambda: constant("1.0e" + "9" * 10_000, p.T),
    "folds of 8 TB": lambda: p.folds(1_000_000_000_000),
    "folds of 800 MB": lambda: p.folds(100_000_000),
    "a window of 2 ** 40": lambda: p.window(1 << 40),
    "a window of 2 ** 30": lambda: p.window(1 << 30),
    "padding of 2 ** 61": lambda: p.pads(1 << 61),
    "padding of 2 ** 36": lambda: p.pads(1 << 36),
    "3000 parameters and results": lambda: p.parameters(3000),
    "3000 operands": lambda: p.operands(3000),
    "rank 64": lambda: p.rank(64),
    "rank 200": lambda: p.rank(200),
    "rank 5000": lambda: p.rank(5000),
    "3000 branches": lambda: p.branches(3000),
    "a comparator of 3000 ops": lambda: p.comparator(3000),
    "100k functions": lambda: p.functions(DEEP),
}

_TEXT: Final[dict[str, Make]] = {
    "a line of 10 MB": lambda: "//" + "x" * 10_000_000 + "\n" + identity(),
    "blanks of 10 MB": lambda: " " * 10_000_000 + identity(),
    "a name of 1 MB": lambda: identity(f"%{'x' * 1_000_000} = stablehlo.add %a, %a : {p.T}"),
    "a string of 10 MB": lambda: attribute('"' + "x" * 10_000_000 + '"'),
    "quotes": lambda: '"' * DEEP,
    "backslashes": lambda: attribute('"' + "\\" * DEEP),
    "angles": lambda: "tensor<" * DEEP,
    "angles in a type": lambda: with_type("tensor<" + "<" * DEEP),
    "slashes": lambda: "/" * DEEP,
    "zero bytes": lambda: identity() + "\0" * DEEP,
    "lone surrogates": lambda: attribute('"\\ED\\A0\\80\\FF"'),
    "names of other scripts": lambda: identity(f"%\u00e9\u0663 = stablehlo.add %a, %a : {p.T}"),
    "a resource of 4 GB": lambda: p.resource("tensor<1000000000xf32>", "0x040000000000803F"),
    "a resource of odd length": lambda: p.resource("tensor<1xf32>", "0x040"),
}


# ---- HLO text
def _hlo(body: str, layout: str = "") -> str:
    return f"HloModule m{layout}\n\n{body}"


def _hlo_entry(*instructions: str) -> str:
    lines = "\n  ".join(("p = f32[4] parameter(0)", *instructions))
    return _hlo(f"ENTRY e {{\n  {lines}\n}}")


def _hlo_root(shape: str, value: str) -> str:
    return _hlo_entry(f"ROOT t = {shape} {value}")


def _hlo_calls(count: int, *, ring: bool = False) -> str:
    found = []
    for n in reversed(range(count)):
        callee = f"f{n + 1}" if n + 1 < count else "f0" if ring else ""
        root = f"call(p{n}), to_apply={callee}" if callee else f"add(p{n}, p{n})"
        name = f"f{n}" if n else "ENTRY f0"
        found.append(f"{name} {{\n  p{n} = f32[4] parameter(0)\n  ROOT r{n} = f32[4] {root}\n}}\n")
    return _hlo("\n".join(found))


def _hlo_chain(count: int) -> str:
    lines = ("i0 = f32[4] negate(p)", *(f"i{n} = f32[4] add(i{n - 1}, i{n - 1})" for n in range(1, count)))
    return _hlo_entry(*lines, f"ROOT r = f32[4] negate(i{count - 1})")


_HLO: Final[dict[str, Make]] = {
    "nested tuples": lambda: _hlo_root(nested("(", "f32[4]", ")"), "tuple(p)"),
    "nested literals": lambda: _hlo_root("f32[4]", f"constant({nested('{', '1', '}')})"),
    "nested attributes": lambda: _hlo_root("f32[4]", f"negate(p), backend_config={nested('{', '1', '}')}"),
    "nested operands": lambda: _hlo_root("f32[4]", nested("negate(", "p", ")")),
    "brackets never closed": lambda: _hlo_root("f32[4]", "constant(" + "{" * DEEP),
    "a huge constant": lambda: _hlo_root("f32[9999999999999]", "constant({...})"),
    "a huge broadcast": lambda: _hlo_root("f32[99999999999,99999999999]", "broadcast(p), dimensions={}"),
    "a short huge constant": lambda: _hlo_root("f32[9999999999999]", "constant({1, 2})"),
    "a huge iota": lambda: _hlo_root("f32[99999999999]", "iota(), iota_dimension=0"),
    "a huge window": lambda: _hlo_root("f32[4]", "copy(p), window={size=99999999999999x99999999999 pad=9_9}"),
    "a huge layout": lambda: _hlo_root("f32[4]{99999999999999999999:T(8,128)(99999999999999)}", "copy(p)"),
    "calls, 10k deep": lambda: _hlo_calls(10_000),
    "calls in a ring": lambda: _hlo_calls(100, ring=True),
    "a call of itself": lambda: _hlo_calls(1, ring=True),
    "10k instructions": lambda: _hlo_chain(10_000),
    "an instruction of itself": lambda: _hlo_root("f32[4]", "negate(t)"),
    "two of each other": lambda: _hlo_entry("a = f32[4] negate(b)", "b = f32[4] negate(a)", "ROOT c = f32[4] tuple(a)"),
    "a parameter of number 10 ** 12": lambda: _hlo("ENTRY e {\n ROOT p = f32[4] parameter(1000000000000)\n}"),
    "an alias of a part that is not there": lambda: _hlo(
        "ENTRY e {\n ROOT p = f32[4] parameter(0)\n}", ", input_output_alias={ {9999999999}: (7, {5}, may-alias) }"
    ),
    "replica groups": lambda: _hlo_root(
        "f32[4]", "all-gather(p), dimensions={0}, replica_groups=[999999999,99999999]<=[99999999999999999]"
    ),
    "strings": lambda: _hlo_root("f32[4]", 'custom-call(p), custom_call_target="' + "\\" * DEEP),
    "a line of 10 MB": lambda: _hlo_root("f32[4]", f'negate(p), metadata={{op_name="{"x" * 10_000_000}"}}'),
}


# ---- bytecode
def _varints(*numbers: int) -> bytes:
    from hilo.formats.bytecode.wire import varint

    return b"".join(map(varint, numbers))


def _file(*sections: tuple[int, bytes]) -> bytes:
    from hilo.testing.mutate import joined

    return joined(b"ML\xefR" + _varints(6) + b"fuzz\0", sections)


def _entries(*datas: bytes) -> bytes:
    """A file whose attributes have these encodings, of the builtin dialect; the first is the module's."""
    strings = [b"builtin\0", b"module\0"]
    offsets = _varints(len(datas), 0) + _varints(0, len(datas), *((len(d) << 1 | 1) for d in datas))
    ir = _varints(1 << 1) + _varints(0) + b"\x11" + _varints(0, 0, 1 << 1 | 1) + _varints(0, 0)
    return _file((0, _varints(len(strings), *(len(s) for s in reversed(strings))) + b"".join(strings)),
                 (1, _varints(1, 0 << 1, 1, 0, 1, 1 << 1)), (2, b"".join(datas)), (3, offsets), (4, ir))  # fmt: skip


def _bytes_of_sizes(count: int) -> bytes:
    return _file((0, _varints(count)), (1, b""), (2, b""), (3, b""), (4, b""))


_BYTECODE: Final[dict[str, Callable[[], bytes]]] = {
    "2 ** 60 strings": lambda: _bytes_of_sizes(1 << 60),
    "2 ** 64 - 1 strings": lambda: _bytes_of_sizes((1 << 64) - 1),
    "an array of itself": lambda: _entries(_varints(0, 1, 0)),
    "arrays of each other": lambda: _entries(_varints(0, 1, 1), _varints(0, 1, 0)),
    "arrays in a chain": lambda: _entries(*(_varints(0, 1, n + 1) for n in range(DEEP)), _varints(0, 0)),
    "arrays that double": lambda: _entries(*(_varints(0, 2, n + 1, n + 1) for n in range(60)), _varints(0, 0)),
    "sections of zero bytes": lambda: b"ML\xefR" + _varints(6) + b"x\0" + b"\0\1" * DEEP,
    "a section of 2 ** 63 bytes": lambda: b"ML\xefR" + _varints(6) + b"x\0" + b"\0" + _varints(1 << 63),
    "no end of the producer": lambda: b"ML\xefR" + _varints(6) + b"x" * DEEP,
}


def _encoded(make: Make) -> Callable[[], bytes]:
    return lambda: make().encode()


ATTACKS: Final[dict[str, Callable[[], bytes]]] = {
    **{name: _encoded(make) for name, make in {**_DEPTH, **_SIZE, **_TEXT}.items()},
    **{f"HLO: {name}": _encoded(make) for name, make in _HLO.items()},
    **{f"bytecode: {name}": make for name, make in _BYTECODE.items()},
    **{f"message: {name}": make for name, make in MESSAGES.items()},
}
