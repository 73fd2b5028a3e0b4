"""Records: what dataclasses of the same declaration do."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

import pytest

from hilo.record import field, record, replace


@record(frozen=True)
class Point:
    x: int
    y: int = 2
    note: str = field(default="", repr=False, compare=False)


@record
class Bag:
    name: str
    items: list[int] = field(default_factory=list)


@record(eq=False)
class Place:
    at: int


@record(frozen=True)
class Deep(Point):
    z: int = 3


def test_values_by_place_name_and_default() -> None:
    p = Point(1, note="n")
    assert (p.x, p.y, p.note) == (1, 2, "n")
    for wrong in ({}, {"x": 1, "w": 2}):
        with pytest.raises(TypeError, match=r"Point\.__init__\(\)"):
            Point(**wrong)
    with pytest.raises(TypeError):
        Point(1, 2, "", 4)  # type: ignore[call-arg]


def test_equality_hash_and_text_are_those_of_dataclasses() -> None:
    @dataclasses.dataclass(frozen=True)
    class Same:
        x: int
        y: int = 2

    assert repr(Point(1)) == "Point(x=1, y=2)" == repr(Same(1)).rpartition(".")[2].replace("Same", "Point")
    assert Point(1, note="a") == Point(1, note="b") != Point(2)
    assert hash(Point(1, note="a")) == hash(Point(1, 2))
    other: Any = Deep(1, 2)
    assert Point(1) != other
    assert Bag("a") == Bag("a", [])
    with pytest.raises(TypeError, match="unhashable"):
        hash(Bag("a"))
    one = Place(1)
    assert one == one != Place(1)
    assert len({one, Place(1)}) == 2


def test_frozen_cannot_be_set_others_can() -> None:
    p: Any = Point(1)
    with pytest.raises(AttributeError, match="Point is frozen: x"):
        p.x = 2
    with pytest.raises(AttributeError, match="Point is frozen: y"):
        del p.y
    b = Bag("a")
    b.items = [1]
    assert b == Bag("a", [1])


def test_defaults_are_made_anew() -> None:
    a, b = Bag("a"), Bag("b")
    a.items.append(1)
    assert b.items == []


def test_inherited_fields_come_first() -> None:
    assert Deep(1, 4, "", 5).z == 5
    assert repr(Deep(1)) == "Deep(x=1, y=2, z=3)"


def test_replace_and_copies() -> None:
    p = Point(1, note="n")
    assert replace(p, y=5) == Point(1, 5)
    assert replace(p, y=5).note == "n"
    with pytest.raises(TypeError):
        replace(p, w=1)
    assert copy.copy(p) == copy.deepcopy(p) == p


def test_the_first_objects_and_all_later_ones_are_made_alike() -> None:
    @record(frozen=True)
    class Interval:
        low: int
        high: int = 9
        marks: list[int] = field(default_factory=list)

        def __post_init__(self) -> None:
            object.__setattr__(self, "size", self.high - self.low)

    made = [Interval(i, marks=[i]) if i % 2 else Interval(low=i) for i in range(40)]
    assert [(p.low, p.high, p.marks) for p in made] == [(i, 9, [i] * (i % 2)) for i in range(40)]
    assert [vars(p)["size"] for p in made] == [9 - i for i in range(40)]
    assert len({id(p.marks) for p in made}) == 40
    make: Any = Interval
    for wrong in ((), (1, 2, [], 4)):
        with pytest.raises(TypeError, match=r"Interval\.__init__\(\)"):
            make(*wrong)
    with pytest.raises(TypeError, match="multiple values"):
        make(1, low=2)
