"""Which cases of a parametrized test README's command runs; the others are marked `thorough`.

A test says it by one of three forms of a marker:

@pytest.mark.quick_cases(cover="values")    every value of every parameter occurs in a case
@pytest.mark.quick_cases(cover="pairs")     every pair of values of two parameters occurs
@pytest.mark.quick_cases(every=4)           the first case of every four
@pytest.mark.quick_cases(one_per=function)  the first case of each value of a function of
                                            the parameters, which it takes by name
"""

from collections import Counter
from itertools import combinations, groupby

import pytest


def mark_thorough_cases(items):
    """Mark the cases that README's command leaves out."""
    for _, cases in groupby(items, key=lambda item: (item.parent, getattr(item, "function", None))):
        cases = [case for case in cases if hasattr(case, "callspec")]
        # Slow cases are nobody's representative: a quick command never runs them.
        cases = [case for case in cases if case.get_closest_marker("slow") is None]
        if not cases:
            continue
        rule = cases[0].get_closest_marker("quick_cases")
        if rule is not None:
            quick = set(map(id, _choose(cases, **rule.kwargs)))
            for case in cases:
                if id(case) not in quick:
                    case.add_marker(pytest.mark.thorough)


def _choose(cases, cover=None, every=None, one_per=None):
    if cover is not None:
        return _covering(cases, {"values": 1, "pairs": 2}[cover])
    if every is not None:
        return cases[::every]
    first = {}
    for case in cases:
        first.setdefault(one_per(**case.callspec.params), case)
    return list(first.values())


def _covering(cases, size):
    """Return few cases in which all combinations of `size` parameters' values occur.

    Greedy: each is one of those that bring the most combinations that are new, and of these the
    first whose values occurred least until then.
    """
    values = {id(case): _values(case) for case in cases}
    left = {id(case): set(combinations(values[id(case)], size)) for case in cases}
    uses, chosen = Counter(), []

    def rank(case):
        return len(left[id(case)]), -sum(uses[value] for value in values[id(case)])

    while True:
        best = max(cases, key=rank)
        covered = set(left[id(best)])
        if not covered:
            return chosen
        chosen.append(best)
        uses.update(values[id(best)])
        for combination in left.values():
            combination -= covered


def _values(case):
    """Return the value of each parametrization of a case, of several names as one."""
    params, values = case.callspec.params, []
    for mark in case.iter_markers("parametrize"):
        names = mark.args[0] if mark.args else mark.kwargs["argnames"]
        if isinstance(names, str):
            names = names.replace(",", " ").split()
        # By identity: values need not be hashable, and all cases hold the same objects.
        values.append((*names, *(id(params[name]) for name in names)))
    return values
