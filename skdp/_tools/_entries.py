"""The entries of the registry of tools: a tool as a step, and as a caller of private fits."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from skdp._data._forms import TableForm
from skdp._data._frames import kind_of
from skdp._data._output import frame_library
from skdp._tools._functions import is_elementwise
from skdp._tools._scores_and_folds import unread_folds_problem
from skdp.utils._values import FrozenValue

# Methods and functions in which a tool learns from its rows.
FITS = frozenset(
    "fit _fit fit_transform fit_predict partial_fit _partial_fit fit_resample conformalize "
    "fit_conformalize calibrate find_label_issues".split()
)
# Description of each kind of step that `step_kind` returns.
REASONS = {
    "private": "its fit is charged",
    "local": "each row's transform is charged, even in predictions",
    "stateless": "learns nothing",
    "frozen": "was fitted before and is not fitted again",
    "opaque": "was fitted before, and its output for a row may depend on other rows",
    "declared": "learns nothing beyond what its parameters declare",
    "container": "fits the steps inside it, each once",
    "learns": "learns from the data without privacy",
    "not_row_wise": (
        "may round a row differently if the number of rows changes, which is private here"
    ),
    "resamples": "fits rows that are repeated, left out or made from other rows",
    "calibrates": "fits its last stage to raw rows",
    "cross_validates": "chooses by raw scores on private rows",
    "wrapper": "fits the estimators inside it in a way that no plan covers",
    "unknown": "is not known, and may learn from the data without privacy",
}
ACCEPTED = ("private", "stateless", "frozen", "declared")


@dataclass(frozen=True, kw_only=True)
class Tool(FrozenValue):
    """An entry of the registry: one tool of another library.

    Parameters
    ----------
    classes : tuple of str, default=()
        Public names of its classes, with their modules. A module's name means all of its classes
        that have no entry.
    step : KnownStep or None, default=None
        The classes as steps of a pipeline.
    modules : tuple of str, default=()
        Modules in which its code runs, including all submodules that have no entry, or
        "module:function" for a single function.
    call : KnownCaller or None, default=None
        The calls from these modules around private fits.
    """

    classes: tuple[str, ...] = ()
    step: "KnownStep | None" = None
    modules: tuple[str, ...] = ()
    call: "KnownCaller | None" = None


def _always(step):
    return True


def _no_text(step):
    return ""


def _same_width(step, d):
    return d


@dataclass(frozen=True, kw_only=True)
class KnownStep(FrozenValue):
    """Entry that describes how the classes of a tool, as steps of a pipeline, learn from rows.

    Parameters
    ----------
    kind : str
        Kind of an instance whose parameters meet the condition; a key of `REASONS`.
    condition : callable
        Maps an instance to False if its parameters contradict the kind.
    otherwise : str
        Kind of an instance that does not meet the condition.
    advice : str
        What to use instead, for kinds that are not accepted.
    advice_on : callable
        Maps an instance to advice that is more specific than `advice`; "" if there is none.
    private_parts : tuple of str
        Parameters that meet the condition only if they hold an estimator that learns nothing from
        rows without privacy.
    inner : tuple of str
        The parameters that hold the estimators that a step fits.
    defaults : dict of str to callable
        By parameter, functions that return the estimator that a step fits if the parameter is None.
    fails_on : callable
        Maps an instance to a description of the values for which it raises an error, with the
        remedy; "" if there are none.
    width : callable
        Maps (instance, d) to the number of output columns for `d` input columns; None if unknown.
    cells : str
        Kind of the output columns, as in `TableShape`; "" if unknown.
    sparse : {"refused", "kept", "dense", "made"}
        Treatment of a sparse table. With "made", dense tables also become sparse.
    is_row_wise : callable
        Maps an instance to True if each output row depends only on its input row, to the last bit,
        because only operations listed in `skdp._data._row_wise` are used. A matrix product is not
        listed, because its rounding depends on the number of rows.
    """

    kind: str
    condition: Callable = _always
    otherwise: str = "learns"
    advice: str = ""
    advice_on: Callable = _no_text
    private_parts: tuple = ()
    inner: tuple = ()
    defaults: Mapping = field(default_factory=dict)
    fails_on: Callable = _no_text
    width: Callable = _same_width
    cells: str = "number"
    sparse: str = "refused"
    is_row_wise: Callable = _always

    def output_form(self, step, form):
        """Return the form of an accepted step's output, from the form of its input."""
        output = form.with_columns(self.width(step, form.n_columns))
        cells = self.cells
        library = frame_library(step)
        names = None
        if not cells:
            # A function may return a different container from the one that it receives. Functions
            # of NumPy return a pandas frame with the same columns for a pandas frame.
            is_known = form.library in ("", "pandas") and is_elementwise(step.func, step.kw_args)
            if not (is_known and form.holds_numbers):
                return TableForm(
                    n_rows=form.n_rows, classes=form.classes, n_columns=output.n_columns
                )
            cells = kind_of(np.asarray(_of_one(step.func)).dtype)
            if form.library and not step.validate and library in ("", form.library):
                library = form.library
                names = form.names
        return replace(
            output,
            kinds=None if output.n_columns is None else (cells,) * output.n_columns,
            holds_numbers=cells == "number",
            library=library,
            names=names,
            has_names=None,
            is_sparse=self._makes_sparse(step, form),
        )

    def _makes_sparse(self, step, form):
        """Return True if the output for a table of this form is sparse.

        If the step has a parameter `sparse_output` (or `sparse`, its older name), that decides.
        """
        params = step.get_params(deep=False)
        sparse_output = params.get("sparse_output", params.get("sparse"))
        if isinstance(sparse_output, bool):
            return sparse_output
        # A step that refuses sparse tables never receives one.
        return {"kept": form.is_sparse, "made": True, "dense": False, "refused": False}[self.sparse]


def _of_one(function):
    """Return the value of an elementwise function (None is the identity) for a table with one 1."""
    with np.errstate(all="ignore"):
        if function is None:
            return np.ones((1, 1))
        return function(np.ones((1, 1)))


@dataclass(frozen=True)
class KnownCaller:
    """The calls of a tool around private fits, and their privacy problem.

    Parameters
    ----------
    wrong : str
        The tool's problem, as the end of a sentence that begins with its name.
    instead : str
        What to use instead.
    refused : bool, default=False
        True to refuse the fit, False to warn.
    problem : callable or None, default=None
        Function of the local variables of a call that returns the problem of this call, or "" if
        there is none. None means that every call has the problem `wrong`.
    refusal : callable or None, default=None
        Function of the local variables of a call that returns the reason to refuse it, or "".
    functions : frozenset of str or None, default=FITS
        Functions of the modules that learn from rows; None means all functions. If the tool's
        `modules` name a function, the entry is about that function.
    name : str, default=""
        Name of the tool for users; "" means the name of the class or function.
    wrong_scores : str, default=""
        Predicate of a sentence whose subject is the tool: the problem with private scores that it
        computes, and advice. "" if there is none.
    """

    wrong: str
    instead: str
    refused: bool = False
    problem: Callable[[dict], str] | None = None
    refusal: Callable[[dict], str] | None = None
    functions: frozenset[str] | None = FITS
    name: str = ""
    wrong_scores: str = ""

    def problem_of(self, variables):
        """Return a call's problem ("" if there is none), and True if the call is refused."""
        refusal = ""
        if self.refusal is not None:
            refusal = self.refusal(variables)
        if refusal:
            return refusal, True
        problem = self.wrong
        if self.problem is not None:
            problem = self.problem(variables)
        return problem, self.refused

    def problem_of_part(self, part, y=None):
        """Return the problem of a part whose fit comes after other charges, as `problem_of` does.

        Parameters
        ----------
        part : estimator
        y : array-like, default=None
            Its targets. Only their shape is used.
        """
        variables = {"self": part, "y": y}
        problem, is_refused = self.problem_of(variables)
        late_folds = ""
        if not is_refused:
            late_folds = unread_folds_problem(variables)
        if late_folds:
            return late_folds, True
        return problem, is_refused
