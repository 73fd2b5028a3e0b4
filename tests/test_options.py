"""Options: defaults, variables, clear errors."""

from __future__ import annotations

import pytest

from hilo.errors import Error
from hilo.options import DEFAULT, FAST_MATH, Options, options


def test_defaults_are_strict_and_hashable() -> None:
    assert Options() == DEFAULT
    assert hash(Options()) == hash(DEFAULT)
    assert not DEFAULT.fast_math
    assert Options.from_env({}) == DEFAULT


def test_every_option_has_a_variable_of_its_own_and_a_text() -> None:
    variables = [o.variable for o in options().values()]
    assert len(set(variables)) == len(variables)
    assert all(v == f"HILO_{name.upper()}" for v, name in zip(variables, options()))
    assert all(o.doc for o in options().values())


def test_values_from_variables() -> None:
    o = Options.from_env(
        {
            "HILO_FAST_MATH": "finite, reciprocal",
            "HILO_THREADS": "3",
            "HILO_FOLD_ELEMENTS": "10",
            "HILO_CACHE": "0",
            "HILO_STOP": "cse#2",
            "HILO_SKIP": "fuse simplify#2",
            "HILO_PRINT": "all",
            "HILO_DUMP": "/somewhere",
            "HILO_VERIFY": "yes",
            "HILO_TIME": "",
            "OTHER": "x",
        }
    )
    assert o == Options(
        fast_math=frozenset({"finite", "reciprocal"}), threads=3, fold_elements=10, cache=False, stop="cse#2",
        skip=("fuse", "simplify#2"), print=("all",), dump="/somewhere", verify=True,
    )  # fmt: skip


def test_arguments_win_over_variables() -> None:
    assert Options.from_env({"HILO_THREADS": "nonsense"}, threads=2).threads == 2


def test_fast_math_takes_names_all_or_none() -> None:
    assert Options(fast_math="all").fast_math == set(FAST_MATH)  # type: ignore[arg-type]
    assert Options(fast_math=True).fast_math == set(FAST_MATH)  # type: ignore[arg-type]
    assert Options(fast_math=["gather"]).fast_math == {"gather"}  # type: ignore[arg-type]
    assert Options.from_env({"HILO_FAST_MATH": "none"}).fast_math == set()
    assert Options.from_env({"HILO_FAST_MATH": "1"}).fast_math == set(FAST_MATH)


@pytest.mark.parametrize(
    ("variable", "text", "message"),
    [
        ("HILO_FAST_MATH", "fnite", "HILO_FAST_MATH.*'fnite'.*finite"),
        ("HILO_THREADS", "0", "HILO_THREADS.*positive"),
        ("HILO_THREADS", "many", "HILO_THREADS must be a number, not 'many'"),
        ("HILO_VERIFY", "maybe", "HILO_VERIFY must be 0 or 1, not 'maybe'"),
        ("HILO_FOLD_ELEMENTS", "-1", "HILO_FOLD_ELEMENTS"),
        ("HILO_STOP", "cse#0", "HILO_STOP.*'cse#0'"),
        ("HILO_STOP", "#1", "HILO_STOP"),
        ("HILO_SKIP", "cse#x", "HILO_SKIP.*'cse#x'"),
    ],
)
def test_wrong_variables_are_named(variable: str, text: str, message: str) -> None:
    with pytest.raises(Error, match=message):
        Options.from_env({variable: text})


def test_unknown_options_and_wrong_types_are_errors() -> None:
    with pytest.raises(Error, match=r"no option 'thread'.*threads"):
        Options.from_env({}, thread=1)
    with pytest.raises(Error, match="no option 'thread'"):
        DEFAULT.replace(thread=1)
    with pytest.raises(Error, match="threads"):
        Options(threads=1.5)  # type: ignore[arg-type]
    with pytest.raises(Error, match="verify"):
        Options(verify="1")  # type: ignore[arg-type]
    with pytest.raises(Error, match="dump"):
        Options(dump=3)  # type: ignore[arg-type]
    for name in ("fast_math", "skip", "print"):
        for value in (5, [5], ["x", 5]):
            with pytest.raises(Error, match=rf"{name} \(HILO_{name.upper()}\) must be names, not"):
                Options(**{name: value})


def test_the_code_key_knows_what_code_depends_on() -> None:
    assert DEFAULT.replace(dump="/x", time=True, threads=3).code_key() == DEFAULT.code_key()
    assert DEFAULT.replace(fast_math={"finite"}).code_key() != DEFAULT.code_key()
    assert DEFAULT.replace(codegen="auto").code_key() != DEFAULT.replace(codegen="llvm").code_key()
    hash(DEFAULT.code_key())
