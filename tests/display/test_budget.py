import matplotlib
import pytest

from skdp import PrivacyAccountant
from skdp.accounting import Gaussian, PureDP
from skdp.display import BudgetDisplay

matplotlib.use("Agg")


def test_what_it_shows_is_what_the_ledger_says():
    accountant = PrivacyAccountant(2.0, 1e-5, composition="zcdp")
    for _ in range(4):
        accountant.charge(Gaussian(20.0), label="weekly mean")
    accountant.charge(PureDP(0.1))
    display = BudgetDisplay.from_accountant(accountant).plot()
    prices = [spend.epsilon for spend in accountant.charges]
    assert display.epsilons == {"weekly mean": sum(prices[:4]), "unlabeled": prices[4]}
    assert display.spent == accountant.epsilon_spent < sum(prices)
    by_label, spent, left = display.bars_
    assert [bar.get_width() for bar in by_label] == list(display.epsilons.values())
    assert spent[0].get_width() == display.spent
    assert left[0].get_width() == pytest.approx(accountant.epsilon_remaining)
    assert display.ax_.get_xlabel() == "ε (δ = 1e-05)"
    matplotlib.pyplot.close(display.figure_)


def test_an_unused_budget_and_axes_of_ones_own():
    figure, ax = matplotlib.pyplot.subplots()
    display = BudgetDisplay.from_accountant(PrivacyAccountant(1.0, 0.0)).plot(ax=ax)
    assert display.ax_ is ax and display.figure_ is figure
    assert display.bars_[2][0].get_width() == 1.0
    matplotlib.pyplot.close(figure)


def test_long_labels_are_broken():
    accountant = PrivacyAccountant(1.0, 0.0)
    accountant.charge(PureDP(0.5), label="Pipeline of 2 steps, from columntransformer__imputer")
    display = BudgetDisplay.from_accountant(accountant).plot()
    (label, _) = (tick.get_text() for tick in display.ax_.get_yticklabels())
    assert label == "Pipeline of 2 steps, from\ncolumntransformer__imputer"
    matplotlib.pyplot.close(display.figure_)
