"""Check of all private members of scikit-learn's tools before the first member is charged.

scikit-learn's ensembles, pipelines and searches fit one private estimator after another, and each
one charges separately. Without this check, a wrong parameter of a later member would raise an error
only after the charges of the earlier ones.
"""

import sys
from collections.abc import Callable
from contextvars import ContextVar

# Methods of tools that fit their members.
FIT_METHODS = frozenset({"fit", "fit_transform", "fit_predict", "partial_fit"})
# Prefixes of these tools' module names.
FIT_MEMBERS = ("sklearn.", "imblearn.pipeline")
# Name of the local variable in the frame of a tool's fit which records that its members were
# checked, or the error of the check. It ends with the call.
CHECKED_VARIABLE = "__skdp_checked_members__"
# Module and names of scikit-learn's functions that fit and score an estimator several times.
VALIDATION = "sklearn.model_selection._validation"
VALIDATIONS = frozenset(
    "cross_validate cross_val_predict learning_curve validation_curve "
    "permutation_test_score".split()
)
# Functions that check the members of a tool in a fit, functions that check only the parameters of
# an estimator and its members, and functions that check the call of a validation. Modules that
# this one cannot import, because they import it, register them: `skdp.pipeline._checked_fits` and
# `skdp.model_selection._scorer`.
_checks: list[Callable] = []
_parameter_checks: list[Callable] = []
_validation_checks: list[Callable] = []
# True while members are being checked, which copies them.
_is_checking = ContextVar("_is_checking", default=False)


def register_member_check(check_members):
    """Add a function that raises the errors of a tool's members about their parameters."""
    _checks.append(check_members)


def register_parameter_check(check_parameters):
    """Add a function that raises the errors for the parameters of an estimator and its members."""
    _parameter_checks.append(check_parameters)


def register_validation_check(check_validation):
    """Add a function that raises the errors for the local variables of a validation's call."""
    _validation_checks.append(check_validation)


def check_members_around(frame=None):
    """Raise `ValueError` if a tool around a call fits a member with a wrong parameter.

    This is called before a charge, and before a copy is sent to workers. Each fit of a tool is
    checked once.

    Parameters
    ----------
    frame : frame, default=None
        The call; None for the caller of this function.

    Raises
    ------
    ValueError
        The message names the member.
    """
    if _is_checking.get():
        return
    if frame is None:
        frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_globals.get("__name__") or ""
        if name == VALIDATION and frame.f_code.co_name in VALIDATIONS:
            if CHECKED_VARIABLE not in frame.f_locals:
                # The function clones its estimator once before it routes the parameters of its
                # fits. The check waits until they are known.
                if "routed_params" in frame.f_locals:
                    _mark(frame)
                _check_validation(frame.f_locals)
        if frame.f_code.co_name in FIT_METHODS and name.startswith(FIT_MEMBERS):
            tool = frame.f_locals.get("self")
            is_tool = hasattr(tool, "get_params") and not isinstance(tool, type)
            if is_tool:
                _check_once(tool, frame)
        frame = frame.f_back


def is_checking_members():
    """Return True while members are being checked, which copies them but charges nothing."""
    return _is_checking.get()


def refuses_parameters(estimator):
    """Return True if the fit of an estimator refuses a parameter before its charge."""
    token = _is_checking.set(True)
    try:
        for check in _parameter_checks:
            check(estimator)
    except (TypeError, ValueError):
        return True
    finally:
        _is_checking.reset(token)
    return False


def _mark(frame, result=True):
    """Store in the frame of a call that it was checked, or the error of the check."""
    # A function that uses `locals()` would see the variable.
    if "locals" not in frame.f_code.co_names:
        frame.f_locals[CHECKED_VARIABLE] = result


def _check_once(tool, frame):
    """Check the members of a tool, or raise the error of their check again.

    Every member sent to a worker is refused, because an error in one worker does not end the call.
    """
    result = frame.f_locals.get(CHECKED_VARIABLE)
    if isinstance(result, Exception):
        raise result
    if result is not None:
        return
    _mark(frame)
    try:
        _check(tool, frame)
    except (TypeError, ValueError) as error:
        _mark(frame, error)
        raise


def _check_validation(variables):
    """Run the registered checks of a validation, with the local variables of its call."""
    token = _is_checking.set(True)
    try:
        for check in _validation_checks:
            check(variables)
    finally:
        _is_checking.reset(token)


def _check(tool, frame):
    """Run the registered checks of the members of a tool, with the arguments of its call."""
    # Chains use another name for the target.
    y = frame.f_locals.get("y", frame.f_locals.get("Y"))
    # Methods of pipelines and unions use different names for the parameters.
    params = frame.f_locals.get("params", frame.f_locals.get("fit_params")) or {}
    if "classes" in frame.f_locals:
        # The argument of `partial_fit`.
        params = {**params, "classes": frame.f_locals["classes"]}
    token = _is_checking.set(True)
    try:
        for check in _checks:
            check(tool, y, params, frame.f_code.co_name, frame.f_locals.get("X"))
    finally:
        _is_checking.reset(token)
