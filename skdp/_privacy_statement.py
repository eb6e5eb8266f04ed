"""Privacy statements: the guarantee of a fitted estimator, with its assumptions."""

from collections import Counter
from dataclasses import dataclass, replace

from skdp.mechanisms._stages import joined_calls, sampler_of
from skdp.utils._documents import PrintedDocument, Section
from skdp.utils._rounding import format_rounded_up
from skdp.utils._types import Relation, Unit
from skdp.utils._units import for_unit
from skdp.utils._values import FrozenValue

CENTRAL = "central: the curator who fits sees the data, others see the fitted estimator"
LOCAL = "local: noise is added to each row, and the curator sees only the noisy rows"
SEEDED = "YES: anyone who knows the seed can remove the noise"
NOTHING_RELEASED = "none: nothing was released, so nothing was charged"
NO_ACCOUNTANT = "none: no accountant"
CHARGED_LATER = "none: the fit charged nothing; each release is charged when it is made"
PLAN_NOT_CHARGED = "none: it is part of a plan that has no accountant"
NO_LEDGER = "none: the release is in no ledger; the cost of other releases must be added"
OF_ONE_ROW = " of one row; epsilon and delta are those of a group"
MORE = ("more", "to_dict() and skdp.privacy_report have the noise and the ledger's hash")


@dataclass(frozen=True)
class PrivacyStatement(PrintedDocument, FrozenValue):
    """The guarantee that covers a fitted estimator's public attributes and predictions.

    Printing gives the guarantee as text. A notebook shows all fields as HTML. `to_dict` gives JSON
    values.

    Parameters
    ----------
    estimator : str
        The estimator's class.
    epsilon, delta : float
        The guarantee of the fitted model. After several calls of `partial_fit`, the guarantee of
        all calls together.
    relation : {"add_remove", "replace_one"}
        The neighboring relation. Add/remove means that a row is replaced by a null row.
    unit : str
        Description of the privacy unit.
    mechanism : str
        The mechanism of the release; after several calls the mechanisms of all calls.
    noise_scale : float
        The noise scale of the main stage: the standard deviation of a Gaussian, the scale of a
        Laplace distribution, sensitivity / epsilon for the Gamma-norm mechanism. After several
        calls, the scale of the call with the smallest noise relative to its sensitivity.
    sensitivity : float
        The sensitivity to which that noise was calibrated, in the mechanism's norm.
    composition : str
        How the costs of this and other fits add up, or "none" without an accountant.
    sampler : str
        Description of the rows that each stage reads.
    public : tuple of str
        Descriptions of the facts that were assumed to be public.
    seeded : bool
        True if the noise came from an integer seed. Anyone who knows the seed can remove the noise,
        so the guarantee holds against others only.
    record : str
        The hash of the ledger's record of this fit, empty without an accountant.
    version : str
        The version of skdp.
    trust_model : str
        Description of who sees the raw data, and who sees the release.
    neighbors : str
        Description of the difference between two neighboring data sets.
    dataset : str
        The data set's name in the ledger, empty without an accountant.
    noise_multiplier : float or None
        For noisy gradients: the noise scale of one step divided by the sensitivity of its gradient
        sum. If the number of steps is chosen during the fit, all steps count as one. None for other
        mechanisms.
    stages : tuple of Stage
        Every release, with its noise distribution, scale, sensitivity, event and rows.
    charges : tuple of Charge
        The separate cost and event of each call of `fit` or `partial_fit`. They compose by the
        ledger's rule, and without an accountant by basic composition.
    part_of : str
        Description of the search that fitted the model; the guarantee is then the search's. Empty
        without a search.
    call_number : int
        The number of the last call of `partial_fit`; 0 for a call of `fit`.
    call_rows : str
        Description of the relation between the rows of a call of `partial_fit` and those of other
        calls.
    calls : tuple of PrivacyStatement
        After several calls the separate statement of each call. Empty after one call.
    """

    estimator: str
    epsilon: float
    delta: float
    relation: Relation
    unit: Unit
    mechanism: str
    noise_scale: float
    sensitivity: float
    composition: str
    sampler: str
    public: tuple
    seeded: bool
    record: str
    version: str
    trust_model: str = CENTRAL
    neighbors: str = ""
    dataset: str = ""
    noise_multiplier: float | None = None
    stages: tuple = ()
    charges: tuple = ()
    part_of: str = ""
    call_number: int = 0
    call_rows: str = ""
    calls: tuple = ()

    # Rows that the printed text omits. They serve to check the mathematics or the ledger.
    of_the_noise = ("noise scale", "sensitivity", "noise multiplier", "stages", "record", "version")
    not_covered = (
        "scores on private rows, other steps of a pipeline, choices made by looking at the data, "
        "the time that fitting took; rows must be chosen by index and a public seed, which "
        "stratified folds are not"
    )

    @property
    def covered(self):
        """Description of the values that the guarantee covers."""
        subject = "this fit"
        if len(self.charges) > 1:
            subject = f"the model after each of its {len(self.charges)} calls"
        return f"the public attributes of {subject} and all that is computed from them: predictions"

    def to_dict(self):
        """Return the statement as JSON values.

        Returns
        -------
        dict
        """
        values = dict(vars(self))
        # The other fields describe all calls together, and `charges` the cost of each call.
        for name in ("calls", "call_number", "call_rows"):
            # Statements that were pickled by an earlier version do not have these fields.
            values.pop(name, None)
        values["public"] = list(self.public)
        values["stages"] = [stage.to_dict() for stage in self.stages]
        values["charges"] = [_charge_values(charge) for charge in self.charges]
        return values | {"covered": self.covered, "not_covered": self.not_covered}

    def to_tags(self):
        """Return the statement as a dictionary of short texts, for model registries.

        Returns
        -------
        dict of str to str
            Keys are field names. The epsilon and delta of the model are rounded up.
        """
        return {name.replace(" ", "_"): text for name, text in self.rows()}

    def section(self):
        """Return all fields as a section of a document.

        Returns
        -------
        Section
        """
        cost = format_rounded_up(self.epsilon, self.delta)
        # The first three are in the heading.
        rows = tuple(self.rows()[3:])
        return Section(f"{self.estimator} is ({cost})-differentially private", rows)

    def __str__(self):
        section = self.section()
        rows = tuple(row for row in section.rows if row[0] not in self.of_the_noise)
        return "\n".join(replace(section, rows=(*rows, MORE)).to_text())

    def rows(self):
        """Return the label and the value of each field as text.

        Returns
        -------
        list of (str, str)
        """
        noise_multiplier = ""
        if self.noise_multiplier is not None:
            noise_multiplier = f"{self.noise_multiplier:g}"
        sensitivity = f"{self.sensitivity:g}"
        stages = "; ".join(f"({i}) {stage}" for i, stage in enumerate(self.stages, start=1))
        if self.unit.startswith("group"):
            # The noise is calibrated to one row, with a smaller epsilon than that of the group.
            sensitivity += OF_ONE_ROW
            noise_multiplier += OF_ONE_ROW if noise_multiplier else ""
            stages += (
                f"; sensitivities and noise multipliers are those{OF_ONE_ROW}" if stages else ""
            )
        texts = {
            "estimator": self.estimator,
            "epsilon": format_rounded_up(self.epsilon),
            "delta": format_rounded_up(self.delta),
            "relation": f"{self.relation}: {self.neighbors}",
            "unit": self.unit,
            "mechanism": self.mechanism,
            "noise_scale": f"{self.noise_scale:g}",
            "sensitivity": sensitivity,
            "part_of": self.part_of,
            "composition": self._describe_composition(),
            "sampler": self.sampler,
            "public": "; ".join(self.public) or "nothing",
            "seeded": SEEDED if self.seeded else "no",
            "record": self._describe_record(),
            "version": f"skdp {self.version}",
            "trust_model": self.trust_model,
            "data_set": self.dataset,
            "noise_multiplier": noise_multiplier,
            "stages": stages,
            "calls": self._describe_calls(),
            "covered": self.covered,
            "not_covered": self.not_covered,
        }
        return [(name.replace("_", " "), text) for name, text in texts.items() if text]

    def _describe_composition(self):
        if self.composition != "none":
            return self.composition
        return NO_LEDGER if self.stages else NOTHING_RELEASED

    def _describe_record(self):
        if self.record:
            n_missing = sum(not charge.hash for charge in self.charges)
            if n_missing == 0:
                return self.record
            return f"{self.record}; {n_missing} of {len(self.charges)} calls: {NO_ACCOUNTANT}"
        if not self.stages:
            return NOTHING_RELEASED
        if self.composition == "none":
            return NO_ACCOUNTANT
        return PLAN_NOT_CHARGED if self.charges else CHARGED_LATER

    def _describe_calls(self):
        if len(self.charges) < 2:
            return ""
        last = self.charges[-1]
        return (
            f"{len(self.charges)} calls, each of which starts from the released weights; the last "
            f"call alone is ({format_rounded_up(last.epsilon, last.delta)})-differentially private"
        )


def joined_statement(calls, epsilon, delta, unit):
    """Return the statement of a model that was fitted by several consecutive calls.

    Parameters
    ----------
    calls : tuple of PrivacyStatement
        The separate statement of each call, in order. All have the same neighboring datasets.
    epsilon, delta : float
        The guarantee of all calls together.
    unit : {"row", "group", "person"}
        The privacy unit.

    Returns
    -------
    PrivacyStatement
    """
    last = calls[-1]
    stages = ()
    for call in calls:
        stages = joined_calls(stages, call.stages)
    # The call whose noise hides least.
    main = min(calls, key=_noise_over_sensitivity)
    return replace(
        last,
        epsilon=epsilon,
        delta=delta,
        mechanism=_join_with_counts([call.mechanism for call in calls]),
        noise_scale=main.noise_scale,
        sensitivity=main.sensitivity,
        noise_multiplier=main.noise_multiplier,
        sampler=_sampler_of_calls(calls, stages, unit),
        public=tuple(dict.fromkeys(text for call in calls for text in call.public)),
        seeded=any(call.seeded for call in calls),
        version=_join_distinct([call.version for call in calls]),
        dataset=_join_distinct([call.dataset for call in calls if call.dataset]),
        part_of=_join_distinct([call.part_of for call in calls if call.part_of]),
        stages=stages,
        charges=tuple(charge for call in calls for charge in call.charges),
        calls=calls if len(calls) > 1 else (),
    )


def _noise_over_sensitivity(call):
    if call.noise_multiplier is not None:
        return call.noise_multiplier
    return call.noise_scale / call.sensitivity if call.sensitivity else 0.0


def _join_distinct(texts):
    return "; ".join(dict.fromkeys(texts))


def _join_with_counts(texts):
    """Return the distinct texts in one, each with the number of calls that have it."""
    counts = Counter(texts)
    if len(counts) == 1:
        return texts[0]
    return "; ".join(
        f"{count} call{'s' if count > 1 else ''}: {text}" for text, count in counts.items()
    )


def _sampler_of_calls(calls, stages, unit):
    """Return a description of the rows that all calls read, and of their overlap."""
    texts = [for_unit(sampler_of(stages), unit)]
    # (first call, last call, description) of consecutive calls with the same description.
    ranges = []
    for call in calls:
        if ranges and ranges[-1][2] == call.call_rows:
            ranges[-1][1] = call.call_number
        else:
            ranges.append([call.call_number, call.call_number, call.call_rows])
    for first, last, description in ranges:
        if first == 0:
            # It was a call of `fit`.
            continue
        numbers = f"call {last}" if first == last else f"call {first} to call {last}"
        texts.append(f"{numbers} of partial_fit: {description}")
    return "; ".join(texts)


def _charge_values(charge):
    """Return a charge as JSON values, without its user and purpose, which are not public."""
    values = dict(vars(charge))
    del values["user"], values["purpose"]
    part = None if charge.part is None else dict(vars(charge.part))
    return values | {"event": charge.event.to_json(), "part": part}
