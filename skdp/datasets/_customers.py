"""A synthetic table of customers, with its schema."""

from copy import deepcopy

import numpy as np
from sklearn.utils import Bunch, check_random_state

from skdp._data._schema import Schema
from skdp.utils._validation import check_integer

# The possible answers, as the customers' form lists them. Income is in currency units per year,
# hours are per week, and visits are per year.
BOUNDS = {
    "age": (18, 100),
    "income": (0, 150_000),
    "hours": (0, 80),
    "visits": (0, 60),
    "joined": ("2012-01-01", "2026-01-01"),
}
CATEGORIES = {
    "education": ["school", "college", "bachelor", "master"],
    "job": ["care", "crafts", "teaching", "industry", "office", "retail", "studies", "retired"],
    "region": ["center", "east", "islands", "north", "south", "west"],
}


def make_customers(
    n_samples: int = 20_000, *, rows_per_person: int = 1, random_state: int | None = 0
) -> Bunch:
    """Return a synthetic table of customers, some of whom renewed their contract.

    The table has numbers, categories, a date and missing values, like a typical office file. The
    chance of renewal has a peak in age, grows with the logarithm of income, and grows faster with
    the number of visits for customers below 45, so no linear model fits it. The table is drawn from
    public formulas and needs no protection.

    Parameters
    ----------
    n_samples : int, default=20_000
        Number of rows.
    rows_per_person : int, default=1
        Maximum number of rows of a person. If it is greater than 1, a person has contracts for
        several years: income, hours, visits and the date differ from row to row.
    random_state : int or None, default=0
        Seed or generator of the table. An int returns the same table each time.

    Returns
    -------
    people : Bunch
        With these entries:

        data : DataFrame, or ndarray of object, of shape (n_samples, 8)
            A frame if pandas is installed. In the array, dates are days since 1970.
        target : ndarray of shape (n_samples,)
            1 if the contract was renewed, as about a third were, and 0 otherwise.
        groups : ndarray of shape (n_samples,)
            Person id of each row.
        schema : skdp.Schema
            The possible answers that the form lists, by column:
            ``DPAdditiveClassifier(**people.schema)``.

    Raises
    ------
    ValueError
        If `n_samples` or `rows_per_person` is below 1.

    See Also
    --------
    skdp.schema_from : Draft of such a schema for another table.

    Examples
    --------
    >>> from skdp.datasets import make_customers
    >>> people = make_customers(1000)
    >>> people.data.shape, people.schema["bounds"]["age"]
    ((1000, 8), (18, 100))
    """
    n = check_integer(n_samples, "n_samples", 1)
    max_rows = check_integer(rows_per_person, "rows_per_person", 1)
    rng = check_random_state(random_state)
    groups = np.repeat(np.arange(n), rng.randint(1, max_rows + 1, n))[:n]

    age = np.rint(18 + 72 * rng.beta(1.7, 2.6, n))[groups]
    education = rng.choice(4, n, p=[0.4, 0.3, 0.2, 0.1])[groups]
    job = np.where(age < 67, rng.randint(7, size=n)[groups], 7)
    region = rng.choice(6, n, p=[0.3, 0.2, 0.05, 0.15, 0.18, 0.12])[groups]
    log_income = 9.9 + 0.28 * education - ((age - 52) / 40) ** 2 + 0.4 * rng.randn(n)[groups]
    log_income -= np.array([0, 0, 0, 0, 0, 0, 0.8, 0.3])[job]
    income = np.round(np.exp(log_income + 0.15 * rng.randn(n)), -2).clip(0, 150_000)
    hours = np.where(job < 6, np.clip(np.rint(rng.normal(38, 9, n)), 0, 80), 0)
    visits = rng.poisson(rng.gamma(1.2, 4, n)).clip(0, 60)
    joined = rng.randint(15_340, 20_454, n)

    score = 2.5 * np.exp(-(((age - 48) / 15) ** 2)) + 1.2 * np.log(income / 25_000 + 0.1)
    score += np.where(age < 45, 1.2, 0.5) * np.sqrt(visits) + 0.01 * hours
    score += np.array([-0.3, 0.2, 0.1, 0.4, 0.1, -0.4, -1, -0.2])[job]
    score += np.array([0.4, 0, -0.6, -0.2, 0.1, 0])[region] - 0.0004 * (joined - 18_000)
    target = (score + rng.logistic(size=n) > 4.2).astype(np.int64)
    income[rng.rand(n) < 0.08] = np.nan

    codes = {"education": education, "job": job, "region": region}
    columns = {"age": age}
    for name, category_codes in codes.items():
        columns[name] = np.array(CATEGORIES[name], dtype=object)[category_codes]
    columns |= {"income": income, "hours": hours, "visits": visits, "joined": joined}
    schema: dict[str, dict] = {"bounds": BOUNDS, "categories": CATEGORIES}
    try:
        from pandas import Categorical, DataFrame, to_datetime
    except ImportError:
        data = np.array(list(columns.values()), dtype=object).T
        days = np.array(BOUNDS["joined"], dtype="M8[D]").astype(np.int64)
        indices = {name: j for j, name in enumerate(columns)}
        schema = {
            half: {indices[name]: answers for name, answers in declared.items()}
            for half, declared in schema.items()
        }
        schema["bounds"][indices["joined"]] = tuple(days.tolist())
    else:
        columns["joined"] = to_datetime(joined, unit="D")
        columns |= {
            name: Categorical(columns[name], answers) for name, answers in CATEGORIES.items()
        }
        data = DataFrame(columns)
    return Bunch(data=data, target=target, groups=groups, schema=Schema(deepcopy(schema)))
