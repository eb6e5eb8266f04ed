"""Synthetic tables with differential privacy."""

import math
from dataclasses import replace
from functools import partial
from typing import ClassVar, Literal

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from skdp._data._columns import read_columns
from skdp._data._errors import column_name
from skdp._data._frames import objects
from skdp._data._kinds import read_kinds
from skdp._data._labels import are_missing
from skdp._data._lengths import opened_table
from skdp._data._tables import names_for_keys
from skdp.base import (
    ReadTable,
    TableEstimator,
    plans_for_groups,
    private_fit,
    private_fit_method,
    row_wise_answer,
)
from skdp.ledger import PrivacyAccountant
from skdp.stats._column_cells import Column, cell_reader, declared_columns, served_blocks
from skdp.stats._column_plan import plan_columns
from skdp.synthesis._constraints import (
    DeclaredConstraints,
    check_columns,
    check_constraint_kinds,
    check_copies,
    check_decimals,
    check_forbidden,
    check_workload,
    warn_of_unmapped_copies,
)
from skdp.synthesis._model import fit_model
from skdp.synthesis._plan import SynthesisFit
from skdp.synthesis._released_table import public_column, public_table
from skdp.synthesis._report import SynthesisReport
from skdp.synthesis._sampling import RowDrawer
from skdp.synthesis._table_form import FormedShape, ListedType, TableForm, days_as_times
from skdp.utils._validation import check_integer, check_verbose


class DPTableSynthesizer(TableEstimator):
    """Synthetic rows of a table, from noisy counts of its columns and of pairs of columns.

    A fit releases noisy counts of each column, one noisy score per pair of columns, and noisy
    tables of the pairs that depend on each other most. A model of all columns is computed from
    these tables. Any number of rows can be drawn from it without further cost. Tables need no
    preprocessing: numbers, strings, dates and missing values are accepted.

    Parameters
    ----------
    epsilon : float, default=1.0
        Epsilon of a fit, positive. It covers everything that is learned from the data.
    delta : float, default=1e-6
        Delta of a fit, in [0, 1). With 0, the noise is Laplace noise, rows are less accurate and
        categories must be declared.
    target : str, int or list of these, default=None
        Column, or columns, that the rows will be used to predict. Its tables with all other
        columns are measured.
    bounds : "auto", tuple of (low, high) or dict of column to (low, high) or "auto", default="auto"
        Range of numeric and date columns: one pair of numbers or of arrays of shape (n_features,)
        for all columns, or a dict with a pair for some columns. It must not be computed from the
        data. Ranges that are not declared are found privately within the same budget. Values
        outside the bounds are clipped.
    categories : "auto", dict of column to list, list or "auto", default="auto"
        Declared categories of categorical columns, which must not be taken from the data: a dict
        from a column's name or position to its list, a list with one entry per column (None for a
        numeric column), or one flat list for every column. Categories that are not declared, or are
        "auto", are found privately within the same budget, which needs a positive delta. All other
        values are one further category, "other". A data frame's column of dtype object is
        categorical unless `bounds` names it.
    workload : list of tuples of columns, default=None
        Tables of two to four columns that are measured in any case.
    forbidden : dict of (column, column) to list of (value, value), default=None
        Pairs of values that occur in no row, such as ``{("age", "status"): [((0, 15),
        "married")]}``; a tuple represents a range of numbers. The pairs must not be computed from
        the data.
    decimals : dict of column to int, default=None
        Number of decimals of the values of numeric columns. For columns of dates, it is the number
        of decimals of days; 0 means dates without a time of day. For columns of integers it is 0.
    same_as : dict of column to column, or to (column, dict), default=None
        Columns that are equal to another one, or a function of it that the dict declares. Nothing
        is released about them.
    accountant : PrivacyAccountant, default=None
        The accountant that is charged before anything is computed from the data. If None,
        nothing is recorded and the guarantee holds under "add_remove".
    random_state : int or None, default=None
        None draws noise from the operating system's cryptographic generator. An int makes the
        noise reproducible, for tests and examples: anyone who knows it can remove the noise.
    verbose : int, default=0
        0 is silent, 1 or more prints the charge and a line after each stage: the counts, the
        scores, the tables and the model. scikit-learn's callbacks (1.9 and later,
        ``set_callbacks``) receive the same progress.

    Attributes
    ----------
    model_ : TableModel
        Groups of cells and the conditional distributions of the columns.
    counts_ : list of ndarray
        Estimated counts of the cells of each modeled column.
    scores_ : ndarray of shape (n_pairs,)
        Noisy score of each pair of columns in `pairs_`, minus that of independent columns.
    pairs_ : list of (int, int)
        Positions of the pairs of columns that were scored.
    tables_ : list of ReleasedTable
        The measured tables.
    noise_multiplier_ : float or None
        Noise multiplier of the whole fit as one Gaussian release; None with delta = 0.
    n_units_ : int
        Public number of rows, or of persons. It is the default number of rows to draw.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features seen during `fit`, if X has names that are all strings.
    privacy_ : PrivacyStatement
        The guarantee of the fit and its assumptions.

    Raises
    ------
    ValueError
        If a parameter or the data are invalid; nothing was charged.
    BudgetExceededError
        If the accountant refuses the charge; nothing was computed and nothing is fitted.

    See Also
    --------
    evaluate_synthetic : Comparison of synthetic rows with released tables and public test rows.

    Notes
    -----
    A fit is (`epsilon`, `delta`)-differentially private under the accountant's relation. The
    number of rows (or persons), names and types of columns, and all declared parameters are public.
    The design, the sensitivities and the proof are in ``docs/theory/synthetic_tables.md``.

    Statistical tests on synthetic rows reject too often, because they ignore the noise. If a single
    classifier is needed, `DPAdditiveClassifier` is more accurate at the same epsilon.

    References
    ----------
    R. McKenna, G. Miklau and D. Sheldon. Winning the NIST contest: a scalable and general approach
    to differentially private synthetic data. Journal of Privacy and Confidentiality, 2021. J. Dong,
    A. Roth and W. Su. Gaussian differential privacy. JRSS B, 2022.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from skdp.synthesis import DPTableSynthesizer
    >>> rng = np.random.default_rng(0)
    >>> age = rng.integers(18, 90, size=5_000)
    >>> patients = pd.DataFrame({"age": age, "smokes": rng.random(5_000) < age / 200})
    >>> synthesizer = DPTableSynthesizer(epsilon=1.0, bounds={"age": (18, 90)}).fit(patients)
    >>> rows = synthesizer.sample(1_000, random_state=0)
    >>> rows.dtypes.equals(patients.dtypes), bool(rows["age"].between(18, 90).all())
    (True, True)
    """

    _accepts = ("categorical", "string", "allow_nan")
    _public: ClassVar[tuple[str, ...]] = (
        "bounds",
        "categories",
        "target",
        "workload",
        "forbidden",
        "decimals",
        "same_as",
    )
    _also_public = ("the columns' types and names",)

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 1e-6,
        target: str | int | list | None = None,
        bounds: Literal["auto"] | tuple | dict = "auto",
        categories: Literal["auto"] | dict | list | None = "auto",
        workload: list | None = None,
        forbidden: dict | None = None,
        decimals: dict | None = None,
        same_as: dict | None = None,
        accountant: PrivacyAccountant | None = None,
        random_state: int | None = None,
        verbose: int = 0,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.target = target
        self.bounds = bounds
        self.categories = categories
        self.workload = workload
        self.forbidden = forbidden
        self.decimals = decimals
        self.same_as = same_as
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose

    @private_fit_method
    def fit(self, X, y=None, *, groups=None):
        """Charge the accountant, release the tables and fit the model.

        Parameters
        ----------
        X : array-like, DataFrame, ChunkedArray or a source of it, of shape (n_samples, n_features)
            Rows with numeric, categorical and date columns, with the target if there is one.
            Missing values (NaN, None) are allowed.
        y : None
            Ignored; present for compatibility with pipelines.
        groups : array-like of shape (n_samples,), default=None
            Person id of each row. The privacy unit is then the person, regardless of the number of
            rows, and each row has weight 1 / (number of rows of that person); see
            ``docs/theory/persons.md``. Requires an accountant with unit="person", or none.

        Returns
        -------
        self : estimator
            The fitted estimator.

        Raises
        ------
        ValueError
            If a parameter or the data are invalid; nothing was charged.
        BudgetExceededError
            If the accountant refuses the charge; nothing was computed and nothing is fitted.
        """
        with private_fit(self) as fit:
            table = fit.read(X, groups=groups)
            plan = self.plan_fit(table.shape, fit.guarantee)
            released = fit.run(plan, table)
            constraints = self._constraints(table.shape)
            stages = plan.mechanism
            with fit.progress.stage("model", partial(stages.spent_after, "tables")):
                drawer = self._fit_drawer(stages, released, constraints, table.shape.form)
            names = drawer.form.names
            fit.publish(
                plan,
                model_=drawer,
                counts_=[column.masses for column in released.columns],
                scores_=np.array(list(released.scores.values())),
                pairs_=[tuple(stages.modeled[i] for i in pair) for pair in released.scores],
                tables_=[public_table(t, released.columns, names) for t in released.tables],
                noise_multiplier_=stages.joint_noise_multiplier,
                n_units_=stages.n_rows,
            )
        return self

    @plans_for_groups
    def plan_fit(self, shape, guarantee):
        """Return the plan of a fit to a table of this shape.

        Parameters
        ----------
        shape : TableShape
            Public shape of the table. If the number of rows or of columns is None, the plan's event
            holds for every shape; parameters that need no shape are still checked.
        guarantee : Guarantee
            Guarantee that the fit must meet. It replaces `epsilon`, `delta` and `accountant`, which
            are not read.

        Returns
        -------
        Plan
            Plan made from public information only. No data is read, nothing is charged and no noise
            is drawn.

        Raises
        ------
        ValueError
            If a parameter is invalid, as in `fit`.
        """
        check_verbose(self.verbose)
        n_columns = shape.n_columns
        names = shape.names
        kinds = shape.kinds or [None] * n_columns
        constraints = self._constraints(shape)
        columns = declared_columns(kinds, self.bounds, self.categories, names)
        form = getattr(shape, "form", None)
        if form is not None:
            check_types_of_samples(form, columns, names)
            check_copied_types(form, columns, constraints, names)
        for j in constraints.copies:
            # Nothing is computed from a copied column.
            columns[j] = Column(kind="label", domain=np.empty(0, dtype=object))
        check_constraint_kinds(constraints, columns, names)
        targets = check_columns(self.target, names, n_columns, "target")
        workload = check_workload(self.workload, names, n_columns)
        for parameter, positions in (("target", targets), ("workload", sum(workload, ()))):
            if set(positions) & set(constraints.copies):
                raise ValueError(
                    f"{parameter} names a column in same_as: name the column that it is a copy of"
                )
        steps = [0.0] * n_columns
        value_ranges = [(-np.inf, np.inf)] * n_columns
        if form is not None:
            for j, column in enumerate(columns):
                steps[j] = form.step(j)
                value_ranges[j] = form.value_range(j, has_bounds=column.domain is not None)
        for j, step in constraints.steps.items():
            steps[j] = max(step, steps[j])
        fit = SynthesisFit(
            columns=columns,
            n_rows=shape.n_rows,
            n_bins=0,
            guarantee=guarantee,
            modeled=tuple(j for j in range(n_columns) if j not in constraints.copies),
            steps=tuple(steps),
            value_ranges=tuple(value_ranges),
            can_be_missing=tuple(form is None or form.can_be_missing(j) for j in range(n_columns)),
            can_be_other=tuple(form is None or form.can_be_other(j) for j in range(n_columns)),
            can_be_text=tuple(form is None or form.can_be_text(j) for j in range(n_columns)),
            targets=targets,
            workload=workload,
        )
        fit.check_bounds(names)
        return replace(plan_columns(fit), noise_multiplier=fit.noise_multiplier)

    def sample(self, n_samples=None, random_state=None, *, where=None):
        """Return synthetic rows at no privacy cost.

        Parameters
        ----------
        n_samples : int, default=None
            Number of rows; None is the number of rows, or of persons, in the fit.
        random_state : int, RandomState or None, default=None
            Seed of the draw. It need not be secret.
        where : callable, default=None
            Function of a table of rows that returns a boolean for each of them. Rows for which it
            is False are drawn again.

        Returns
        -------
        table of shape (n_samples, n_features_in_)
            Rows in the container of the fitted table, with its columns and types: a pandas frame
            for a dask frame, a polars frame for a LazyFrame, and an Arrow table for Parquet files.
            A categorical type lists the declared or found categories.

        Raises
        ------
        ValueError
            If `where` or `forbidden` refuses nearly all rows.
        """
        check_is_fitted(self)
        n_rows = self.n_units_
        if n_samples is not None:
            n_rows = check_integer(n_samples, "n_samples", 1)
        return self.model_.draw(n_rows, check_random_state(random_state), where)[0]

    def refused_fraction(self, n_samples=10_000, random_state=None, *, where=None):
        """Return the fraction of drawn rows that `forbidden` or a condition refuses.

        Parameters
        ----------
        n_samples : int, default=10,000
            Number of accepted rows from which the fraction is estimated.
        random_state : int, RandomState or None, default=None
            Seed of the draw.
        where : callable, default=None
            As in `sample`.

        Returns
        -------
        float
        """
        check_is_fitted(self)
        n_rows = check_integer(n_samples, "n_samples", 1)
        return self.model_.draw(n_rows, check_random_state(random_state), where)[1]

    @row_wise_answer
    def score_samples(self, X):
        """Return the log-likelihood of each row under the model.

        It is the logarithm of the probability of the row's cells: its category, or the small range
        of numbers that contains it, in every modeled column. Membership inference attacks use it.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        table = read_columns(self, X, reset=False, allow_nan=True)
        model = self.model_.model
        grids = [column.grid for column in model.columns]
        read = cell_reader([grid.term for grid in grids], checks=True)
        scores = []
        for rows in served_blocks(table, len(grids)):
            codes = read(table, rows)
            cells = [grid.cell_of_raw[raw] for grid, raw in zip(grids, codes, strict=True)]
            scores.append(model.log_probabilities(cells))
        return np.concatenate(scores)

    def score(self, X, y=None):
        """Return the mean log-likelihood of rows under the model.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Rows.
        y : None
            Ignored; present for compatibility with pipelines.

        Returns
        -------
        float
        """
        return float(np.mean(self.score_samples(X)))

    def marginal(self, *columns):
        """Return the released counts of one column, or of several that were measured together.

        Parameters
        ----------
        *columns : str or int
            Names or positions of the columns.

        Returns
        -------
        ReleasedTable
            Noisy counts and their standard error.

        Raises
        ------
        ValueError
            If the columns were not measured together.
        """
        check_is_fitted(self)
        names = names_for_keys(self)
        positions = check_columns(list(columns), names, self.n_features_in_, "columns")
        model = self.model_.model
        modeled = [column.grid.index for column in model.columns]
        if not set(positions) <= set(modeled):
            raise ValueError(f"columns {columns!r}: a column in same_as is not measured")
        places = tuple(modeled.index(j) for j in positions)
        if len(places) == 1:
            return public_column(model.columns[places[0]], self.model_.form.names, self.n_units_)
        for table in model.tables:
            if set(table.columns) == set(places):
                order = [table.columns.index(place) for place in places]
                ordered_table = replace(
                    table, columns=places, counts=np.transpose(table.counts, order)
                )
                return public_table(ordered_table, model.columns, self.model_.form.names)
        measured = [" × ".join(map(str, table.columns)) for table in self.tables_] or ["none"]
        raise ValueError(
            f"columns {columns!r} were not measured together. Declare them in `workload` before "
            f"the fit, or count rows of `sample`. Measured: {', '.join(measured)}"
        )

    def report(self):
        """Return the measured tables and how well simulated rows reproduce them.

        Returns
        -------
        SynthesisReport
        """
        check_is_fitted(self)
        model = self.model_.model
        rows = []
        quality = zip(self.tables_, model.distances, model.expected_distances, strict=True)
        for table, distance, noise in quality:
            rows.append(
                {
                    "columns": table.columns,
                    "cells": table.counts.size,
                    "standard_error": table.standard_error,
                    "distance": distance,
                    "noise": noise,
                }
            )
        summary = [
            ("guarantee", self.privacy_.section().heading),
            (self._unit_counted(), f"{self.n_units_:,}, which is public"),
            ("columns", f"{self.n_features_in_} in the table, {len(model.columns)} modeled"),
            ("pairs of columns", f"{len(self.pairs_)} scored, {len(rows)} measured"),
        ]
        return SynthesisReport(
            rows=rows, summary=summary, columns=self._column_facts(), pairs=self._pair_facts()
        )

    def _unit_counted(self):
        """Return the name of the units that `n_units_` counts, which `fit` was given."""
        if self.privacy_.unit.startswith("person"):
            return "persons"
        return "rows"

    def _column_facts(self):
        """Return the facts that a report lists for each modeled column."""
        model = self.model_.model
        facts = []
        for column, simulated in zip(model.columns, model.simulated_shares, strict=True):
            table = public_column(column, self.model_.form.names, self.n_units_)
            facts.append(
                {
                    "name": table.columns[0],
                    "is_categorical": column.grid.is_categorical,
                    "groups": table.groups[0],
                    "released": table.counts / self.n_units_,
                    "standard_error": table.standard_error / self.n_units_,
                    "simulated": simulated,
                }
            )
        return facts

    def _pair_facts(self):
        """Return the facts that a report lists for each scored pair of columns."""
        names = self.model_.form.names
        measured = [set(table.columns) for table in self.tables_]
        facts = []
        for pair, score in zip(self.pairs_, self.scores_, strict=True):
            columns = pair
            if names is not None:
                columns = tuple(names[j] for j in pair)
            facts.append(
                {
                    "columns": columns,
                    "dependence": 0.5 * float(score) / self.n_units_,
                    "is_measured": set(columns) in measured,
                }
            )
        return facts

    def _check_rows(self, rows, plan):
        plan.mechanism.check(rows)

    def _read_table(self, X, y=None):
        """Return the `ReadTable`: types, names and shape are read, but no values."""
        lazy = X
        X = opened_table(X)
        columns, kinds = read_kinds(self, X)
        if hasattr(type(lazy), "collect") and hasattr(type(lazy), "clear"):
            # An empty polars frame has the types of the lazy one.
            form = TableForm.of(lazy.clear().collect(), columns.shape[1])
        else:
            form = TableForm.of(X, columns.shape[1])
        shape = FormedShape(
            n_rows=columns.shape[0],
            n_columns=columns.shape[1],
            names=names_for_keys(self),
            kinds=kinds,
            form=form,
        )
        return ReadTable(rows=columns, shape=shape)

    def _constraints(self, shape):
        """Return the declared constraints, or raise `ValueError`."""
        copies = check_copies(self.same_as, shape.names, shape.n_columns)
        return DeclaredConstraints(
            steps=check_decimals(self.decimals, shape.names, shape.n_columns),
            copies=copies,
            forbidden=check_forbidden(self.forbidden, shape.names, shape.n_columns, copies),
        )

    def _fit_drawer(self, stages, released, constraints, form):
        """Return the `RowDrawer` of the model that is fitted to released statistics."""
        places = {j: i for i, j in enumerate(stages.modeled)}
        excluded = []
        for pairs in constraints.forbidden:
            pair = tuple(places[j] for j in pairs.columns)
            first, second = (released.columns[i] for i in pair)
            excluded.append((pair, pairs.excluded_groups(first, second)))
        grids = [column.grid for column in released.columns]
        warn_of_unmapped_copies(constraints.copies, grids, form.names)
        targets = tuple(places[j] for j in stages.targets)
        model = fit_model(released, targets, excluded)
        return RowDrawer(
            model=model, form=form, copies=constraints.copies, forbidden=constraints.forbidden
        )


def check_types_of_samples(form, columns, names):
    """Raise `ValueError` for a column whose library cannot convert values to the column's type.

    `sample` would raise the library's error after the charge. An example is
    Arrow's run-end encoding in pandas.

    Parameters
    ----------
    form : TableForm
    columns : list of Column
    names : ndarray of str or None
    """
    labels = [objects([label]) for label in ("a", 1, b"a")]
    for j, column in enumerate(columns):
        if not column.is_categorical:
            # Whether its bounds fit into the type is checked with the bounds.
            examples = [values_of_range(replace(column, domain=(0.0, 0.0)))]
        elif column.domain is None:
            examples = labels
        else:
            examples = [objects(column.domain.tolist())]
        listed = []
        if column.is_categorical and column.domain is not None:
            listed = column.domain.tolist()
        # Some libraries convert None to a value of the type, such as False.
        holds_no_none = None in listed and not form.can_be_missing(j)
        if holds_no_none or not any(form.can_hold(j, values) for values in examples):
            if holds_no_none or (listed and any(form.can_hold(j, v) for v in labels)):
                unsuited = [v for v in listed if not form.can_hold(j, objects([v]))]
                shown = None if holds_no_none else (unsuited or listed)[0]
                raise ValueError(
                    f"{column_name(j, names)} has the type {form.types[j]}, which cannot hold "
                    f"{shown!r} among its categories: declare categories of the column's own type "
                    "only, or convert the column to text"
                )
            raise ValueError(
                f"{column_name(j, names)} has the type {form.types[j]}, to which its library does "
                "not convert values, so that no samples could be returned: convert the column to a "
                "plain type of numbers, strings or dates"
            )


def values_of_range(column):
    """Return the bounds of a numeric column or column of times, or other values of its kind."""
    values = np.array(column.domain or (0.0, 1.0))
    if column.kind == "number":
        return values
    return days_as_times(values, column.kind)


def _maps_all_numbers(mapping, column, step):
    """Return True if a dict has an entry for each number of a column's declared range."""
    if column.kind != "number" or column.domain is None or step == 0.0:
        return False
    low, high = np.array(column.domain) / step
    n_values = high - low + 1.0
    return n_values <= len(mapping) and all(
        float(number * step) in mapping for number in np.arange(np.ceil(low), high + 0.5)
    )


def check_copied_types(form, columns, constraints, names):
    """Raise `ValueError` for a copied column whose type changes its values or cannot hold them.

    Parameters
    ----------
    form : TableForm
    columns : list of Column
        All columns of the table.
    constraints : DeclaredConstraints
    names : ndarray of str or None
    """
    for j, copied in constraints.copies.items():
        source = columns[copied.source]
        step = constraints.steps.get(copied.source, form.step(copied.source))
        has_gap = False
        if copied.mapping is None:
            values = _examples(source, step, form, copied.source)
        else:
            values = copied.values(objects(list(copied.mapping)))
            if source.is_categorical and source.domain is not None:
                values = copied.values(source.domain)
            elif not source.is_categorical:
                has_gap = not _maps_all_numbers(copied.mapping, source, step)
        if (has_gap or are_missing(values).any()) and not form.can_be_missing(j):
            raise ValueError(
                f"same_as: the type of {column_name(j, names)} cannot hold missing values, but "
                f"some values of {column_name(copied.source, names)} have no entry in the dict"
            )
        unsuited = form.changed_values(j, values)
        if len(unsuited):
            raise ValueError(
                f"same_as: the type of {column_name(j, names)} cannot hold {unsuited[0]!r} "
                f"unchanged, which is like the values of {column_name(copied.source, names)} or of "
                "the dict: declare a dict to values of the column's own type, or the bounds or "
                "decimals of the other column"
            )


def _examples(column, step, form, j):
    """Return values like those of a column: the declared ones, or others of its type."""
    if column.is_categorical:
        if column.domain is not None:
            return objects(column.domain.tolist())
        if isinstance(form.types[j], ListedType):
            # The type of its labels is unknown.
            return objects([])
        examples = {"number": [0, 1], "boolean": [False, True]}
        return objects(examples.get(form.kinds[j], ["a"]))
    if column.domain is not None:
        low, high = column.domain
    elif column.kind == "number" and form.step(j) >= 1.0:
        # Found bounds lie within the type of whole numbers.
        low, high = form.value_range(j)
    else:
        low, high = 0.0, 1.0
    between = low + step
    if step == 0.0:
        # Nearly irrational, so that no type of few digits holds it.
        between = low + (high - low) / math.e
    values = np.array([low, high, between])
    if column.kind == "number":
        return values
    return days_as_times(values, column.kind)
