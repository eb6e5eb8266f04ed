"""What noisy stochastic gradient estimators share: parameters, the run and partial fits."""

import math
import os
import uuid
from dataclasses import replace

import numpy as np

from skdp._privacy_statement import joined_statement
from skdp._sgd._defaults import Settings, automatic_settings
from skdp._sgd._plan import SAMPLINGS
from skdp._sgd._updates import LEARNING_RATES, OPTIMIZERS
from skdp.base import PrivateFit, fitted_names, plans_for_groups
from skdp.ledger._report import describe_relation
from skdp.ledger._state import Part, composed_price
from skdp.linear_model._clipped_descent import plan_run
from skdp.linear_model._data_norm import WeightsFit, plan_rows
from skdp.linear_model._regressor import PrivateLinearModel
from skdp.utils import _validation as checks
from skdp.utils._fit_progress import FitProgress

# How many calls of partial_fit share one partition of the ledger.
CALLS_OF_A_PARTITION = 256
LARGEST = 1e50
ROWS_OF_A_CALL = {
    "any": "a charge of its own, which adds to those of other calls",
    "disjoint": "rows declared disjoint from those of other calls",
}


# Of calls that are in no ledger there may be any number.
MOST_CALLS = 2**53


class PartialFit(PrivateFit):
    """A private fit that goes on from a fitted estimator and leaves it as it was if it fails.

    Its charge goes to the handle of all rows or of a part of them, by `partial_fit_rows`.

    Parameters
    ----------
    estimator : estimator
    """

    def __init__(self, estimator):
        super().__init__(estimator)
        self._attributes = {name: getattr(estimator, name) for name in fitted_names(estimator)}

    @property
    def _earlier(self):
        return self._attributes.get("privacy_")

    def check_plan(self, plan):
        """Raise `ValueError` if the calls so far protect something else than this one."""
        super().check_plan(plan)
        terms = self.terms
        earlier = self._earlier
        neighbors = describe_relation(terms.relation, terms.unit, terms.max_rows)
        if earlier is not None and earlier.neighbors != neighbors:
            raise ValueError(
                "all calls of partial_fit must protect the same: the earlier ones protect "
                f"{earlier.unit} under {earlier.relation}, this one {terms.unit} under "
                f"{terms.relation}; pass groups in all calls or in none, and keep the accountant's "
                "relation and unit"
            )

    def charge(self, plan):
        """Book the plan with the handle and return the source of its noise."""
        self._accountant = self._estimator._next_part()
        return super().charge(plan)

    def _make_charge(self, mechanism):
        charge = super()._make_charge(mechanism)
        if self._accountant is None and self._estimator.partial_fit_rows == "disjoint":
            call = self._attributes.get("n_partial_fits_", 0)
            charge = replace(charge, part=Part("partial_fit", call, MOST_CALLS, False))
        return charge

    def _statement_of_model(self, own):
        """Return what all calls did together, of which this one is the last."""
        earlier = self._earlier
        # A model that one call fitted has that call's statement.
        before = () if earlier is None else earlier.calls or (earlier,)
        number = self._attributes.get("n_partial_fits_", 0) + 1
        rows = ROWS_OF_A_CALL[self._estimator.partial_fit_rows]
        calls = (*before, replace(own, call_number=number, call_rows=rows))
        charges = [charge for call in calls for charge in call.charges]
        return joined_statement(calls, *self._composed(charges), self.terms.unit)

    def _composed(self, charges):
        """Return the (epsilon, delta) of all charges of the model together."""
        try:
            epsilon, delta = composed_price(charges, self.terms)
        except ValueError:
            epsilon = delta = math.inf
        if epsilon < math.inf:
            return epsilon, delta
        # An earlier charge, by another accountant, may have no cost, or no finite one at this
        # limit of delta, under this one's rule. Prices add up in any case.
        return composed_price(charges, replace(self.terms, composition="basic", rdp_order=None))

    def _forget(self):
        super()._forget()
        for name, value in self._attributes.items():
            setattr(self._estimator, name, value)


class PrivateSGDModel(PrivateLinearModel):
    """Parameters and runs of estimators that are fitted by noisy stochastic gradients."""

    def _go_on(self, X, y, groups, **declared):
        """Fit as a call of partial_fit: from the released weights on, if there are any."""
        begins = not hasattr(self, "coef_")
        with PartialFit(self) as fit, FitProgress(self) as progress:
            table = fit.with_groups(self._read_table(X, y, begins, **declared), groups)
            plan = self._plan_call(table.shape, fit.guarantee, centered=begins)
            start = None if begins else self._weights(plan)
            call = getattr(self, "n_partial_fits_", 0) + 1
            said = self._statement(plan) | {"n_partial_fits_": call}
            self._charge_and_publish(fit, progress, table, plan, said, start=start)
        return self

    def _weights(self, plan):
        """Return the released weights as those of features and of the constant one."""
        coef = np.atleast_2d(self.coef_)
        units = self._units
        constant = plan.rows.constant
        if constant:
            coef = np.column_stack([coef, (self.intercept_ - units.middle) / constant])
        return np.reshape(coef / units.half, (*plan.loss.weights_shape, -1))

    def _released(self, run, plan):
        """Return the weights and how the run was done; the norm of rows was declared."""
        settings = plan.weights.settings
        names = "alpha batch_size sampling eta0 momentum"
        done = {f"{name}_": getattr(settings, name) for name in names.split()}
        done |= {"max_grad_norm_": settings.clip, "n_iter_": settings.max_iter}
        done["noise_multiplier_"] = plan.noise_multiplier
        released = super()._released(run, plan)
        del released["data_norm_"]
        return released | done

    def _given_settings(self, n_rows, delta):
        def given(name, check, *limits):
            value = getattr(self, name)
            return None if checks.is_auto(value) else check(value, name, *limits)

        sampling = given("sampling", checks.check_choice, ("auto", *SAMPLINGS))
        if sampling == "poisson" and delta == 0.0:
            raise ValueError("sampling='poisson' needs delta > 0; 'without_replacement' takes 0")
        if sampling == "without_replacement" and delta > 0.0:
            raise ValueError("sampling='without_replacement' needs delta=0; 'poisson' takes others")
        batch_size = given("batch_size", checks.check_integer, 1, n_rows)
        if sampling == "full" and batch_size is not None:
            raise ValueError("sampling='full' takes all rows: leave batch_size='auto'")
        return Settings(
            optimizer=checks.check_choice(self.optimizer, "optimizer", OPTIMIZERS),
            sampling=sampling,
            batch_size=batch_size,
            max_iter=given("max_iter", checks.check_integer, 1),
            clip=given("max_grad_norm", checks.check_magnitude),
            alpha=given("alpha", checks.check_within, 0.0, LARGEST),
            eta0=given("eta0", checks.check_magnitude),
            momentum=given("momentum", checks.check_within, 0.0, 1.0, "[)"),
        )

    @plans_for_groups
    def plan_fit(self, shape, guarantee):
        """Return the plan of a fit to a table of this shape.

        Parameters
        ----------
        shape : TableShape
            Public shape of the table, with its labels unless `classes` declares them. Where the
            number of rows or of columns is None, the plan's event holds for every shape, and
            parameters that need no shape are checked all the same.
        guarantee : Guarantee
            Guarantee that the fit must meet; `epsilon`, `delta` and `accountant` are not read.

        Returns
        -------
        Plan
            Made from public information only: no data, no charge, no noise.

        Raises
        ------
        ValueError
            If `fit` would refuse a parameter.
        """
        return self._plan_call(shape, guarantee)

    @plans_for_groups
    def _plan_call(self, shape, guarantee, centered=True):
        """Plan a run, from a center that is released first or from weights that were."""
        task = self._task(shape)
        checks.check_magnitude(self.data_norm, "data_norm")
        rows = plan_rows(self, shape.n_rows, guarantee)
        rows = self._with_center(rows, shape) if centered else rows
        checks.check_choice(self.partial_fit_rows, "partial_fit_rows", ROWS_OF_A_CALL)
        radius = self.projection_radius
        radius = math.inf if radius is None else checks.check_magnitude(radius, "projection_radius")
        checks.check_choice(self.penalty, "penalty", ("l2", None))
        given = self._given_settings(shape.n_rows, rows.left.delta)
        problem = rows.sgd_problem(shape, task)
        weights = plan_run(problem, automatic_settings(problem, given))
        average = checks.check_boolean(self.average, "average")
        update = replace(
            weights.update,
            learning_rate=checks.check_choice(self.learning_rate, "learning_rate", LEARNING_RATES),
            power_t=checks.check_within(self.power_t, "power_t", 0.0, LARGEST),
            n_averaged=weights.update.n_averaged if average else 1,
            radius=radius,
        )
        settings = weights.settings
        if self.penalty is None:
            settings = replace(settings, alpha=0.0, tie=0.0)
        weights = replace(weights, update=update, settings=settings)
        excess = self._units.half**2 * weights.expected_excess
        return WeightsFit(rows=rows, problem=problem, weights=weights, excess=excess)

    def _next_part(self):
        """Return the handle that a call of partial_fit charges."""
        if self.accountant is None or self.partial_fit_rows == "any":
            return self.accountant
        if not hasattr(self.accountant, "disjoint"):
            raise ValueError("partial_fit_rows='disjoint' needs a PrivacyAccountant")
        calls = getattr(self, "n_partial_fits_", 0)
        # The first call after a fit is in no partition with those before, nor is that of a copy. A
        # process that was forked has copies, too, and they were never pickled.
        process, partition = getattr(self, "_partition", (None, ""))
        if not calls or process != os.getpid():
            partition = f"partial_fit {uuid.uuid4().hex}"
            self._partition = os.getpid(), partition
        number, part = divmod(calls, CALLS_OF_A_PARTITION)
        return self.accountant.disjoint(f"{partition} {number}", CALLS_OF_A_PARTITION)[part]

    def __getstate__(self):
        # Two copies that went on in one partition could put different rows into one part.
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_partition"}
