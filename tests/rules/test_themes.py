"""The table of themes: which ops the rules of each match."""

from __future__ import annotations

import pytest

from hilo.options import FAST_MATH
from hilo.rewrite import RuleSet
from hilo.rules import THEMES, Rules, rules_of


@pytest.mark.parametrize("theme", THEMES)
def test_the_table_is_that_of_the_rules(theme: str) -> None:
    matched = {p.symbol.full_name.removeprefix("stablehlo.") for r in rules_of(theme) for p in r.patterns}
    if THEMES[theme]:
        assert matched == set(THEMES[theme].split())
    else:
        assert len(matched) > 50
    assert theme == "fast" or not any(r.changes_values for r in rules_of(theme))


def test_loaded_by_theme_or_all_at_once_they_are_the_same() -> None:
    from hilo.ir.registry import REGISTRY
    from hilo.rules import ALL  # type: ignore[attr-defined]

    for allowed in (frozenset(), frozenset(FAST_MATH)):
        lazy, whole = Rules(RuleSet("none"), allowed), ALL.without_value_changes(allowed)
        for kind in REGISTRY.values():
            assert list(lazy.rules_for(kind)) == list(whole.rules_for(kind))
