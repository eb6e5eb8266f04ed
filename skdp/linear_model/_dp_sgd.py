"""Common parts of noisy stochastic gradient estimators: settings, runs and partial fits."""

import math
import os
import uuid
from dataclasses import replace

import numpy as np

from skdp._fitting._fit_progress import FitProgress
from skdp._optim._default_settings import Settings, automatic_settings
from skdp._optim._noisy_gradients import LEARNING_RATES, OPTIMIZERS
from skdp._optim._sgd_plan import SAMPLINGS
from skdp._privacy_statement import joined_statement
from skdp.base import PrivateFit, fitted_names, plans_for_groups
from skdp.ledger._report import describe_composition, describe_relation
from skdp.ledger._state import Part, composed_price
from skdp.linear_model._clipped_descent import plan_run
from skdp.linear_model._data_norm import WeightsFit, plan_rows
from skdp.linear_model._mechanism_choice import with_steps_of
from skdp.linear_model._regressor import PrivateLinearModel
from skdp.linear_model._row_center import reserve_for_center
from skdp.linear_model._whitening import reserve_for_whitening
from skdp.utils import _validation as checks

# Number of calls of partial_fit that share one partition of the ledger.
CALLS_PER_PARTITION = 256
# Number of calls in a partition if no ledger records them. Any number would do.
MAX_CALLS = 2**53
# Upper bound on alpha and power_t.
MAX_VALUE = 1e50
# Description of a call in the privacy statement, for each value of `partial_fit_rows`.
CALL_DESCRIPTIONS = {
    "any": "a separate charge, which adds to those of other calls",
    "disjoint": "rows declared disjoint from those of other calls",
}


class PartialFit(PrivateFit):
    """A private fit that continues from a fitted estimator and leaves it unchanged on failure.

    Depending on `partial_fit_rows`, it charges the accountant for all rows or for a part of them.

    Parameters
    ----------
    estimator : estimator
    """

    def __init__(self, estimator):
        super().__init__(estimator, FitProgress(estimator), reads_table=True)
        self._attributes = {name: getattr(estimator, name) for name in fitted_names(estimator)}

    @property
    def is_first_call(self):
        """True if there are no released weights to continue from."""
        return "coef_" not in self._attributes

    @property
    def call_number(self):
        """Number of calls of partial_fit since the last `fit`, including this call."""
        return self._attributes.get("n_partial_fits_", 0) + 1

    @property
    def _earlier_statement(self):
        """The statement of the calls so far, or None."""
        return self._attributes.get("privacy_")

    def check_plan(self, plan):
        """Check that this call has the same privacy unit and relation as the calls so far.

        Raises
        ------
        ValueError
            If it does not.
        """
        super().check_plan(plan)
        terms = self.terms
        earlier = self._earlier_statement
        neighbors = describe_relation(terms.relation, terms.unit, terms.max_rows)
        if earlier is not None and earlier.neighbors != neighbors:
            raise ValueError(
                "all calls of partial_fit must have the same unit and relation: the earlier ones "
                f"protect {earlier.unit} under {earlier.relation}, this one {terms.unit} under "
                f"{terms.relation}; pass groups in all calls or in none, and keep the accountant's "
                "relation and unit"
            )

    def charge(self, plan):
        """Charge the accountant of this call and return the source of the noise."""
        self._accountant = self._estimator._accountant_of_call()
        return super().charge(plan)

    def public_charge(self, mechanism):
        """Return this call's charge; without an accountant, it has the part of the rows, too."""
        charge = super().public_charge(mechanism)
        is_disjoint = self._estimator.partial_fit_rows == "disjoint"
        if self._accountant is None and is_disjoint and charge.part is None:
            part = Part("partial_fit", self.call_number - 1, MAX_CALLS, False)
            self._public_charge = replace(charge, part=part)
        return self._public_charge

    def _statement_of_model(self, statement):
        """Return the privacy statement of all calls of `partial_fit`.

        `statement` is that of the last call. The statement of the earlier calls is an attribute of
        the estimator.
        """
        earlier_calls = ()
        if self._earlier_statement is not None:
            # After one call, its statement is the statement of the model.
            earlier_calls = self._earlier_statement.calls or (self._earlier_statement,)
        rows = CALL_DESCRIPTIONS[self._estimator.partial_fit_rows]
        part = next((charge.part for charge in statement.charges if charge.part), None)
        if part is not None and self._estimator.partial_fit_rows == "any":
            # The accountant is a handle for one of the disjoint parts, which the assumptions must
            # declare.
            name = part.partition
            rows = f"rows declared to be part {part.index + 1} of the disjoint parts {name!r}"
        calls = (*earlier_calls, replace(statement, call_number=self.call_number, call_rows=rows))
        charges = [charge for call in calls for charge in call.charges]
        terms = self._composing_terms(charges)
        epsilon, delta = composed_price(charges, terms)
        rule = describe_composition(terms.composition)
        return joined_statement(calls, epsilon, delta, terms.unit, rule)

    def _composing_terms(self, charges):
        """Return the terms whose composition rule gives the cost of the model's charges."""
        try:
            epsilon, _ = composed_price(charges, self.terms)
        except ValueError:
            epsilon = math.inf
        if epsilon < math.inf:
            return self.terms
        # An earlier charge by another accountant may have no finite cost under this accountant's
        # composition rule and delta limit. Basic composition is always possible.
        return replace(self.terms, composition="basic", rdp_order=None)

    def _forget(self):
        """Restore the attributes that the estimator had before the call."""
        super()._forget()
        for name, value in self._attributes.items():
            setattr(self._estimator, name, value)


class PrivateSGDModel(PrivateLinearModel):
    """Base class of estimators that are fitted with noisy stochastic gradients."""

    def _start_of_call(self, plan):
        """Return the weights from which a call of partial_fit continues.

        `coef_` and `intercept_` have the units of targets and refer to the rows as they are. Only
        a call that releases a baseline centers or whitens its rows, which a later call does not, so
        the weights need no other conversion.

        Returns
        -------
        ndarray of shape (*loss.weights_shape, n_features) or None
            The released weights, for targets in half-ranges; the weight of the constant feature,
            the intercept divided by the feature's value, is last. None in the first call.
        """
        if not hasattr(self, "coef_"):
            return None
        weights = np.atleast_2d(self.coef_)
        scale = self._target_scale
        constant = plan.mechanism.rows.constant
        if constant:
            intercept = (self.intercept_ - scale.offset) / constant
            weights = np.column_stack([weights, intercept])
        return np.reshape(
            weights / scale.half_range, (*plan.mechanism.problem.loss.weights_shape, -1)
        )

    def _publish_weights(self, fit, plan, solver, **attributes):
        """Publish the weights, with the settings of the run. The norm of rows is declared.

        Parameters
        ----------
        fit : PrivateFit
        plan : Plan
        solver : ClippedDescent
            The run of the plan, with the penalty that was used.
        **attributes
            The weights, by the names of fitted attributes.
        """
        settings = solver.settings
        fit.publish(
            plan,
            alpha_=settings.alpha,
            batch_size_=settings.batch_size,
            sampling_=settings.sampling,
            eta0_=settings.eta0,
            momentum_=settings.momentum,
            max_grad_norm_=settings.clip,
            n_iter_=settings.max_iter,
            noise_multiplier_=plan.noise_multiplier,
            **attributes,
        )

    def _requested_settings(self, n_rows, delta):
        """Return the settings in the estimator's parameters; automatic ones are None."""

        def requested(name, check, *limits):
            """Return the checked value of a parameter; None for "auto"."""
            value = getattr(self, name)
            if checks.is_auto(value):
                return None
            return check(value, name, *limits)

        sampling = requested("sampling", checks.check_choice, ("auto", *SAMPLINGS))
        if sampling == "poisson" and delta == 0.0:
            raise ValueError(
                "sampling='poisson' needs delta > 0, got delta=0; use 'without_replacement'"
            )
        if sampling == "without_replacement" and delta > 0.0:
            raise ValueError(
                f"sampling='without_replacement' needs delta=0, got delta={delta!r}; use 'poisson'"
            )
        batch_size = requested("batch_size", checks.check_integer, 1, n_rows)
        if sampling == "full" and batch_size is not None:
            raise ValueError(
                f"batch_size is {batch_size}, but sampling='full' uses all rows; set "
                "batch_size='auto', or another sampling"
            )
        return Settings(
            optimizer=checks.check_choice(self.optimizer, "optimizer", OPTIMIZERS),
            sampling=sampling,
            batch_size=batch_size,
            max_iter=requested("max_iter", checks.check_integer, 1),
            clip=requested("max_grad_norm", checks.check_magnitude),
            alpha=requested("alpha", checks.check_within, 0.0, MAX_VALUE),
            eta0=requested("eta0", checks.check_magnitude),
            momentum=requested("momentum", checks.check_within, 0.0, 1.0, "[)"),
        )

    @plans_for_groups
    def plan_fit(self, shape, guarantee):
        """Return the plan of a fit to a table of this shape.

        Parameters
        ----------
        shape : TableShape
            Public shape of the table, with its labels unless `classes` declares them. If the
            number of rows or of columns is None, the plan's event holds for every shape, and
            parameters that need no shape are still checked.
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
    def _plan_call(self, shape, guarantee, with_baseline=True):
        """Return the plan of a run.

        The run starts at a baseline, which is released first, or at weights released earlier.
        """
        loss_spec = self._loss_spec(shape)
        rows = self._plan_rows(shape, guarantee)
        if with_baseline:
            rows = self._reserve_for_baseline(rows, shape)
        return self._plan_steps(shape, rows, loss_spec)

    def _plan_rows(self, shape, guarantee):
        """Return the `RowsFit`; the norm of rows must be declared."""
        checks.check_magnitude(self.data_norm, "data_norm")
        return plan_rows(self, shape.n_rows, guarantee)

    def _plan_steps(self, shape, rows, loss_spec, planned=None):
        """Return the plan of a run on planned rows.

        Parameters
        ----------
        shape : TableShape
        rows : RowsFit
            The releases before the steps, and the guarantee that remains for these.
        loss_spec : LossSpec
        planned : WeightsFit, default=None
            A run with another loss whose batches, number of steps and releases are used.
        """
        checks.check_choice(self.partial_fit_rows, "partial_fit_rows", CALL_DESCRIPTIONS)
        radius = math.inf
        if self.projection_radius is not None:
            radius = checks.check_magnitude(self.projection_radius, "projection_radius")
        checks.check_choice(self.penalty, "penalty", ("l2", None))
        requested = self._requested_settings(shape.n_rows, rows.remaining.delta)
        if planned is not None:
            requested = with_steps_of(requested, planned.weights.settings)
            rows = rows.with_releases_of(planned.rows)
        problem = rows.sgd_problem(shape, loss_spec)
        settings = automatic_settings(problem, requested)
        is_centered = planned is None and self._centers_rows(requested, loss_spec)
        whitened = None
        if planned is None and self._whitens_rows(requested):
            whitened = reserve_for_whitening(rows, shape, loss_spec, settings)
        if whitened is not None:
            rows, problem, settings = whitened
        if whitened is None and is_centered and settings.sampling == "full":
            rows = reserve_for_center(rows, shape)
            problem = rows.sgd_problem(shape, loss_spec)
            settings = automatic_settings(problem, requested)
        weights = plan_run(problem, settings)
        n_averaged = 1
        if checks.check_boolean(self.average, "average"):
            n_averaged = weights.update.n_averaged
        update = replace(
            weights.update,
            learning_rate=checks.check_choice(self.learning_rate, "learning_rate", LEARNING_RATES),
            power_t=checks.check_within(self.power_t, "power_t", 0.0, MAX_VALUE),
            n_averaged=n_averaged,
            radius=radius,
        )
        settings = weights.settings
        if self.penalty is None:
            settings = replace(settings, alpha=0.0, intercept_l2_reg=0.0)
        weights = replace(weights, update=update, settings=settings)
        loss_unit = self._target_scale.half_range**2
        fit = WeightsFit(
            rows=rows,
            problem=problem,
            weights=weights,
            total_excess_loss=loss_unit * weights.expected_excess,
            adapts_penalty=rows.is_centered
            and loss_spec.score_exponent is not None
            and requested.optimizer == "nesterov"
            and requested.momentum is None,
        )
        return fit.plan()

    def _whitens_rows(self, requested):
        """Return True if all settings are automatic, as they then refer to the whitened rows."""
        learning_rate = checks.check_choice(self.learning_rate, "learning_rate", LEARNING_RATES)
        is_default = learning_rate == "constant" and self.average is True
        has_penalty = self.penalty == "l2" and self.projection_radius is None
        return requested == Settings("nesterov") and is_default and has_penalty

    def _centers_rows(self, requested, loss_spec):
        """Return True if a run from a baseline may center and scale the rows.

        Requested settings are in the units of rows that are not centered.
        """
        return False

    def _accountant_of_call(self):
        """Return the accountant that the next call of partial_fit charges."""
        if self.accountant is None or self.partial_fit_rows == "any":
            return self.accountant
        if not hasattr(self.accountant, "disjoint"):
            raise ValueError(
                "partial_fit_rows='disjoint' needs a PrivacyAccountant, got an accountant without "
                "the method disjoint"
            )
        n_calls = getattr(self, "n_partial_fits_", 0)
        # The first call after a fit begins a new partition. So does a call of a copy, because
        # another copy may have used the same rows. A forked process has copies that were never
        # pickled.
        process, partition = getattr(self, "_partition", (None, ""))
        if not n_calls or process != os.getpid():
            partition = f"partial_fit {uuid.uuid4().hex}"
            self._partition = os.getpid(), partition
        number, part = divmod(n_calls, CALLS_PER_PARTITION)
        return self.accountant.disjoint(f"{partition} {number}", CALLS_PER_PARTITION)[part]

    def __getstate__(self):
        # If two copies continued in one partition, they could charge different rows to the same
        # part.
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_partition"}
