"""What a fitted estimator says about the privacy of what it published."""

from collections import Counter
from dataclasses import dataclass, replace

from skdp.mechanisms._stages import joined_calls, sampler_of
from skdp.utils._documents import PrintedDocument, Section
from skdp.utils._rounding import format_rounded_up
from skdp.utils._units import for_unit
from skdp.utils._values import FrozenValue

CENTRAL = "central: whoever fits sees the data, the world sees the fitted estimator"
LOCAL = "local: each row is noised by itself, whoever collects the rows sees noisy ones"
SEEDED = "YES: whoever knows the seed can take the noise away"
NOTHING_RELEASED = "none: nothing was released, so nothing was charged"
NO_ACCOUNTANT = "none: no accountant"
CHARGED_LATER = "none: the fit charged nothing; each release is charged when it is made"
PLAN_NOT_CHARGED = "none: it is part of a plan that has no accountant"
NO_LEDGER = "none: the release is in no ledger, what else was released must be added to it"
MORE = ("more", "to_dict() and skdp.privacy_report have the noise and the ledger's hash")


@dataclass(frozen=True)
class PrivacyStatement(PrintedDocument, FrozenValue):
    """The guarantee that covers a fitted estimator's public attributes and predictions.

    Printing gives the promise as text; a notebook shows all of it as HTML, `to_dict` gives JSON
    values.

    Parameters
    ----------
    estimator : str
        The estimator's class.
    epsilon, delta : float
        The guarantee of the fitted model: after several calls of `partial_fit`, that of all of them
        together.
    relation : {"add_remove", "replace_one"}
        Which data sets are neighbors; add/remove is read as replacing a row by a null row.
    unit : str
        What is protected.
    mechanism : str
        The mechanism that made the release; after several calls those of all of them.
    noise_scale : float
        The scale of the noise of its main stage: the standard deviation of a Gaussian, the scale
        of a Laplace distribution, sensitivity over epsilon for the Gamma-norm mechanism. After
        several calls that of the call whose noise is smallest beside its sensitivity.
    sensitivity : float
        What that noise was calibrated to, in the mechanism's norm.
    composition : str
        How this fit's cost adds to the others in the ledger, or "none" without an accountant.
    sampler : str
        Which rows each stage reads.
    public : tuple of str
        What was taken to be known to everyone.
    seeded : bool
        Whether the noise came from an integer seed; then whoever knows it can remove the noise
        and the guarantee holds against others only.
    record : str
        The hash of the ledger's record of this fit, empty without an accountant.
    version : str
        The version of skdp.
    trust_model : str
        Who sees what.
    neighbors : str
        What differs between two neighboring data sets, in words.
    dataset : str
        The ledger's name of the data set, empty without an accountant.
    noise_multiplier : float or None
        Of noisy gradients: the scale of a step's noise over what one row, or person, moves its sum
        by; for steps whose number is found, that of all steps as one. None otherwise.
    stages : tuple of Stage
        Every release that was made: its law, scale, sensitivity and event, and what it reads.
    charges : tuple of Charge
        What each call of `fit` or `partial_fit` cost by itself, with its event. They compose by the
        ledger's rule; without an accountant by basic composition.
    part_of : str
        The search that fitted the model, in words, where there was one: the guarantee is then the
        search's. Empty otherwise.
    call_number : int
        The number of the last call of `partial_fit`, 0 of a call of `fit`.
    call_rows : str
        What is known of the rows of a call of `partial_fit` beside those of other calls.
    calls : tuple of PrivacyStatement
        After several calls: the statement of each of them by itself. Empty after one.
    """

    estimator: str
    epsilon: float
    delta: float
    relation: str
    unit: str
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

    # What the text leaves to those who check the mathematics or the ledger.
    of_the_noise = ("noise scale", "sensitivity", "noise multiplier", "stages", "record", "version")
    not_covered = (
        "scores on private rows, other steps of a pipeline, choices made by looking at the data, "
        "the time that fitting took; rows must be chosen by index and a public seed, which "
        "stratified folds are not"
    )

    @property
    def covered(self):
        """What the guarantee is about."""
        what = "this fit"
        if len(self.charges) > 1:
            what = f"the model after each of its {len(self.charges)} calls"
        return f"the public attributes of {what} and what is computed from them: predictions too"

    def to_dict(self):
        """Return the statement as JSON values.

        Returns
        -------
        dict
        """
        values = dict(vars(self))
        # The fields above say what the calls did together, and `charges` what each cost.
        for name in ("calls", "call_number", "call_rows"):
            # Statements that an earlier version pickled have no such values.
            values.pop(name, None)
        values["public"] = list(self.public)
        values["stages"] = [stage.to_dict() for stage in self.stages]
        values["charges"] = [_charge_values(charge) for charge in self.charges]
        return values | {"covered": self.covered, "not_covered": self.not_covered}

    def to_tags(self):
        """Return the statement as short text by name, for model registries and model cards.

        Returns
        -------
        dict of str to str
            The epsilon and delta are those of the model, rounded up.
        """
        return {name.replace(" ", "_"): words for name, words in self.rows()}

    def section(self):
        """Return all of it as a part of a document.

        Returns
        -------
        Section
        """
        cost = format_rounded_up(self.epsilon, self.delta)
        # The heading says the first three.
        rows = tuple(self.rows()[3:])
        return Section(f"{self.estimator} is ({cost})-differentially private", rows)

    def __str__(self):
        whole = self.section()
        rows = (*(row for row in whole.rows if row[0] not in self.of_the_noise), MORE)
        return "\n".join(replace(whole, rows=rows).to_text())

    def rows(self):
        """Return each field's label and its value, in words.

        Returns
        -------
        list of (str, str)
        """
        said = {
            "estimator": self.estimator,
            "epsilon": format_rounded_up(self.epsilon),
            "delta": format_rounded_up(self.delta),
            "relation": f"{self.relation}: {self.neighbors}",
            "unit": self.unit,
            "mechanism": self.mechanism,
            "noise_scale": f"{self.noise_scale:g}",
            "sensitivity": f"{self.sensitivity:g}",
            "part_of": self.part_of,
            "composition": self._composition_in_words(),
            "sampler": self.sampler,
            "public": "; ".join(self.public) or "nothing",
            "seeded": SEEDED if self.seeded else "no",
            "record": self._record_in_words(),
            "version": f"skdp {self.version}",
            "trust_model": self.trust_model,
            "data_set": self.dataset,
            "noise_multiplier": ""
            if self.noise_multiplier is None
            else f"{self.noise_multiplier:g}",
            "stages": "; ".join(f"({i}) {stage}" for i, stage in enumerate(self.stages, start=1)),
            "calls": self._calls_in_words(),
            "covered": self.covered,
            "not_covered": self.not_covered,
        }
        return [(name.replace("_", " "), words) for name, words in said.items() if words]

    def _composition_in_words(self):
        if self.composition != "none":
            return self.composition
        return NO_LEDGER if self.stages else NOTHING_RELEASED

    def _record_in_words(self):
        if self.record:
            n_missing = sum(not charge.hash for charge in self.charges)
            missing = f"; {n_missing} of {len(self.charges)} calls: {NO_ACCOUNTANT}"
            return self.record + (missing if n_missing else "")
        if not self.stages:
            return NOTHING_RELEASED
        if self.composition == "none":
            return NO_ACCOUNTANT
        return PLAN_NOT_CHARGED if self.charges else CHARGED_LATER

    def _calls_in_words(self):
        if len(self.charges) < 2:
            return ""
        last = self.charges[-1]
        return (
            f"{len(self.charges)} calls, each of which goes on from the released weights; the last "
            f"by itself is ({format_rounded_up(last.epsilon, last.delta)})-differentially private"
        )


def joined_statement(calls, epsilon, delta, unit):
    """Return the statement of a model that several calls fitted, one after the other.

    Parameters
    ----------
    calls : tuple of PrivacyStatement
        That of each call by itself, in their order. They protect the same.
    epsilon, delta : float
        The guarantee of all calls together.
    unit : {"row", "group", "person"}
        What is protected.

    Returns
    -------
    PrivacyStatement
    """
    last = calls[-1]
    stages = ()
    for call in calls:
        stages = joined_calls(stages, call.stages)
    # The noise that reveals most.
    main = min(calls, key=_noise_over_sensitivity)
    return replace(
        last,
        epsilon=epsilon,
        delta=delta,
        mechanism=_counted([call.mechanism for call in calls]),
        noise_scale=main.noise_scale,
        sensitivity=main.sensitivity,
        noise_multiplier=main.noise_multiplier,
        sampler=_sampler_of_calls(calls, stages, unit),
        public=tuple(dict.fromkeys(words for call in calls for words in call.public)),
        seeded=any(call.seeded for call in calls),
        version=_distinct([call.version for call in calls]),
        dataset=_distinct([call.dataset for call in calls if call.dataset]),
        part_of=_distinct([call.part_of for call in calls if call.part_of]),
        stages=stages,
        charges=tuple(charge for call in calls for charge in call.charges),
        calls=calls if len(calls) > 1 else (),
    )


def _noise_over_sensitivity(call):
    if call.noise_multiplier is not None:
        return call.noise_multiplier
    return call.noise_scale / call.sensitivity if call.sensitivity else 0.0


def _distinct(texts):
    return "; ".join(dict.fromkeys(texts))


def _counted(texts):
    """Return different texts, each with the number of calls that it is about."""
    counts = Counter(texts)
    if len(counts) == 1:
        return texts[0]
    return "; ".join(
        f"{count} call{'s' if count > 1 else ''}: {text}" for text, count in counts.items()
    )


def _sampler_of_calls(calls, stages, unit):
    """Return which rows the stages of all calls read, and how the rows of the calls are related."""
    parts = [for_unit(sampler_of(stages), unit)]
    # Consecutive calls of which the same is known are one part.
    runs = []
    for call in calls:
        known = call.call_rows
        if runs and runs[-1][2] == known:
            runs[-1][1] = call.call_number
        else:
            runs.append([call.call_number, call.call_number, known])
    for first, last, known in runs:
        if first == 0:
            continue
        named = f"call {last}" if first == last else f"call {first} to call {last}"
        parts.append(f"{named} of partial_fit: {known}")
    return "; ".join(parts)


def _charge_values(charge):
    """Return a charge as JSON values."""
    values = {
        name: value for name, value in vars(charge).items() if name not in ("user", "purpose")
    }
    part = None if charge.part is None else dict(vars(charge.part))
    return values | {"event": charge.event.to_json(), "part": part}
