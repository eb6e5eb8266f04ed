"""Privacy statements: the guarantee of a fitted estimator, with its assumptions."""

from collections import Counter
from dataclasses import dataclass, replace

from skdp.mechanisms._stages import joined_calls, sampler_of
from skdp.utils._documents import PrintedDocument, Section, count_of
from skdp.utils._rounding import format_rounded_up
from skdp.utils._types import Relation
from skdp.utils._units import for_unit
from skdp.utils._values import FrozenValue

CENTRAL = "central: the curator who fits sees the data, others see the fitted estimator"
LOCAL = "local: noise is added to each row, and the curator sees only the noisy rows"
SEED_REMOVES_NOISE = "anyone who knows the seed can remove the noise"
NOTHING_RELEASED = "none: nothing was released, so nothing was charged"
NO_ACCOUNTANT = "none: no accountant"
CHARGED_LATER = "none: the fit charged nothing; each release is charged when it is made"
PLAN_NOT_CHARGED = "none: it is part of a plan that has no accountant"
NO_LEDGER = "none: the release is in no ledger; the cost of other releases must be added"
COST_OF_GROUP = "epsilon and delta are those of a group"
OF_ONE_ROW = " of one row"
NOISE_OF_ONE_ROW = f"sensitivities and noise multipliers are those{OF_ONE_ROW}; {COST_OF_GROUP}"
PREDICTIONS = "predictions"
TRANSFORMED_ROWS = "transformed rows"
# Names of the accountant's plan in `composition` begin with this.
PART_OF_PLAN = "part of a plan"
# Number of consecutive records that are listed one by one.
MAX_RECORDS = 5
TO_ONE_RECORD = " to one record that is added to a batch or removed from it"
# Remarks on the sensitivity to one record of a batch, by relation.
REMARKS_ON_RECORDS = {
    "add_remove": (),
    "replace_one": (
        "a record that is replaced changes a sum by at most twice as much, which the event's cost "
        "includes",
    ),
}
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
        The mechanism of the release; after several calls, the mechanisms of all of them.
    noise_scale : float
        The noise scale of the main stage: the standard deviation of a Gaussian, the scale of a
        Laplace distribution, sensitivity / epsilon for the Gamma-norm mechanism. After several
        calls, the scale of the call with the smallest noise relative to its sensitivity.
    sensitivity : float
        The sensitivity to which that noise was calibrated, in the mechanism's norm. For randomly
        drawn batches, it is the sensitivity to adding or removing one record of the batch.
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
        The hash of the ledger's record of this fit, empty without an accountant. After several
        calls, the hash of the last call that was charged to a ledger; `charges` lists all of them.
    version : str
        The version of skdp.
    trust_model : str
        Description of who sees the raw data, and who sees the release.
    neighbors : str
        Description of the difference between two neighboring data sets.
    dataset : str
        The data set's name in the ledger, empty without an accountant. For a reserved budget, the
        data set from which it was reserved. After several calls, all distinct names.
    noise_multiplier : float or None
        The noise scale of the main stage divided by its sensitivity. For noisy gradients, the ratio
        is that of one step, or of all steps together if their number is chosen during the fit. None
        for mechanisms that do not state one.
    stages : tuple of Stage
        Every release, with its noise distribution, scale, sensitivity, event and rows.
    charges : tuple of Charge
        Cost and event of each call of `fit` or `partial_fit`. They compose by the ledger's rule or,
        without an accountant, by basic composition.
    part_of : str
        Description of the search that fitted the model; the guarantee is then the search's. Empty
        without a search.
    call_number : int
        The number of the last call of `partial_fit`; 0 for a call of `fit`.
    call_rows : str
        How the rows of a call of `partial_fit` relate to the rows of other calls.
    calls : tuple of PrivacyStatement
        After several calls, the statement of each call. Empty after one call.
    is_fit : bool
        True if the release is the fit of an estimator, False if a function returned its values.
    outputs : tuple of str
        Names of the outputs that the estimator computes from its public attributes: "predictions",
        and "transformed rows", which also depend on the rows that are transformed.
    ledger : str
        The identity of the ledger, which is the hash of the data set's opening record; empty
        without an accountant. Data sets of two ledgers may have the same name. After several calls,
        the identity of the last one that was charged to a ledger.
    """

    estimator: str
    epsilon: float
    delta: float
    relation: Relation
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
    is_fit: bool = True
    outputs: tuple = (PREDICTIONS,)
    ledger: str = ""

    # Rows that the printed text omits. They serve to check the mathematics or the ledger.
    of_the_noise = ("noise scale", "sensitivity", "noise multiplier", "stages", "record", "version")

    @property
    def datasets(self):
        """Names of the data sets to which the calls were charged, without duplicates."""
        if self.calls:
            names = [call.dataset for call in self.calls]
        else:
            names = [self.dataset]
        return tuple(dict.fromkeys(name for name in names if name))

    def datasets_of(self, hashes):
        """Return the data sets whose ledgers have the records with these hashes.

        Parameters
        ----------
        hashes : set of str
            Hashes of ledger records.

        Returns
        -------
        tuple of (str, str)
            The name of each data set, and the identity of its ledger.
        """
        calls = [
            call
            for call in self.calls or (self,)
            if any(charge.hash in hashes for charge in call.charges)
        ]
        return tuple(dict.fromkeys((call.dataset, call.ledger) for call in calls if call.dataset))

    @property
    def is_charged_later(self):
        """True if the fit is not charged, and each later release, such as a `transform`, is."""
        return self.is_fit and bool(self.stages) and not self.charges

    @property
    def covered(self):
        """Description of the values that the guarantee covers."""
        if not self.is_fit:
            return "the values of this release and all that is computed from them"
        if self.is_charged_later:
            return "each release after the fit, by itself, and all that is computed from it"
        subject = "this fit"
        if len(self.charges) > 1:
            subject = f"the model after each of its {count_of(len(self.charges), 'call')}"
        text = f"the public attributes of {subject} and all that is computed from them"
        if PREDICTIONS in self.outputs:
            text += f": {PREDICTIONS}"
        return text

    @property
    def not_covered(self):
        """Description of what the guarantee does not cover, and how rows must be chosen for it.

        Rows that are transformed are not listed if `is_charged_later`, because each such transform
        is then a separate release.
        """
        others = "other steps of a pipeline"
        activity = "fitting"
        if not self.is_fit:
            others = "models that were fitted elsewhere"
            activity = "the computation"
        transformed = ""
        if self.is_fit and TRANSFORMED_ROWS in self.outputs and not self.is_charged_later:
            transformed = "private rows that are transformed (`transform` adds no noise), "
        return (
            f"{transformed}scores on private rows that are not part of this release, {others}, "
            f"choices made by looking at the data, the time that {activity} took; rows must be "
            "chosen by index and a public seed, not by stratified folds"
        )

    @property
    def seeded_calls(self):
        """Names of the calls whose noise was seeded, or "" if that is true of all calls or none."""
        if len({call.seeded for call in self.calls}) < 2:
            return ""
        ranges = _consecutive(self.calls, lambda call: call.seeded)
        return " and ".join(_name_calls(calls) for calls in ranges if calls[0].seeded)

    def to_dict(self):
        """Return the statement as JSON values.

        Returns
        -------
        dict
        """
        values = dict(vars(self))
        # The other fields describe all calls together, and `charges` the cost of each call.
        for name in ("calls", "call_number", "call_rows", "is_fit", "outputs"):
            # Statements that were pickled by an earlier version do not have these fields.
            values.pop(name, None)
        values["public"] = list(self.public)
        values["stages"] = [stage.to_dict() for stage in self.stages]
        values["charges"] = [_charge_values(charge) for charge in self.charges]
        notes = []
        if self._is_of_group():
            notes = [NOISE_OF_ONE_ROW]
        if self._is_of_sampled_batches():
            remarks = (f"the sensitivity is that{TO_ONE_RECORD}", *self._remarks_on_records())
            notes.append("; ".join(remarks))
        return values | {"notes": notes, "covered": self.covered, "not_covered": self.not_covered}

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
        subject = self.estimator
        if self.is_charged_later:
            subject = f"Each release of {self.estimator}"
        return Section(f"{subject} is ({cost})-differentially private", rows)

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
        stages = "; ".join(f"({i}) {stage}" for i, stage in enumerate(self.stages, start=1))
        of_multiplier = ""
        of_sensitivity = ""
        remarks = ()
        if self._is_of_group():
            # The noise is calibrated to one row, with a smaller epsilon than that of the group.
            of_multiplier = of_sensitivity = OF_ONE_ROW
            remarks = (COST_OF_GROUP,)
            stages += f"; {NOISE_OF_ONE_ROW}"
        noise_multiplier = ""
        if self.noise_multiplier is not None:
            noise_multiplier = self._describe_number(self.noise_multiplier, of_multiplier, remarks)
        if self._is_of_sampled_batches():
            of_sensitivity = TO_ONE_RECORD
            remarks = (*self._remarks_on_records(), *remarks)
        sensitivity = self._describe_number(self.sensitivity, of_sensitivity, remarks)
        texts = {
            "estimator": self.estimator,
            "epsilon": format_rounded_up(self.epsilon),
            "delta": format_rounded_up(self.delta),
            "relation": f"{self.relation}: {self.neighbors}",
            "unit": self.unit,
            "mechanism": self.mechanism,
            "noise_scale": self._describe_number(self.noise_scale),
            "sensitivity": sensitivity,
            "part_of": self.part_of,
            "composition": self._describe_composition(),
            "sampler": self.sampler,
            "public": "; ".join(self.public) or "nothing",
            "seeded": self._describe_seeds(),
            "record": self._describe_record(),
            "version": f"skdp {self.version}",
            "trust_model": self.trust_model,
            "data_set": self._describe_datasets(),
            "noise_multiplier": noise_multiplier,
            "stages": stages,
            "calls": self._describe_calls(),
            "covered": self.covered,
            "not_covered": self.not_covered,
        }
        return [(name.replace("_", " "), text) for name, text in texts.items() if text]

    def _is_of_group(self):
        """Return True if the unit is a group of rows and noise was added for one row."""
        return self.unit.startswith("group") and bool(self.stages)

    def _describe_number(self, number, subject="", remarks=()):
        """Return a number of the main stage with its subject, the stage, and remarks."""
        text = f"{number:g}{subject}"
        stage = self._main_stage()
        if stage and subject:
            text += f", in stage {stage}"
        elif stage:
            text += f" in stage {stage}"
        return "; ".join((text, *remarks))

    def _remarks_on_records(self):
        """Return remarks on the sensitivity to one record of a batch, under the relation."""
        return REMARKS_ON_RECORDS[self.relation]

    def _describe_seeds(self):
        """Return whether the noise was seeded and, if that differs between calls, in which."""
        if not self.seeded:
            return "no"
        if self.seeded_calls:
            return f"YES, in {self.seeded_calls}: {SEED_REMOVES_NOISE}"
        return f"YES: {SEED_REMOVES_NOISE}"

    def _main_stage(self):
        """Return the number of the stage whose noise the statement describes, if there are several.

        None if there is one stage, or the noise is not that of a stage.
        """
        if len(self.stages) < 2:
            return None
        main = self.noise_scale, self.sensitivity
        numbers = [i for i, s in enumerate(self.stages, 1) if (s.scale, s.sensitivity) == main]
        if not numbers:
            return None
        return numbers[-1]

    def _is_of_sampled_batches(self):
        """Return True if the main stage reads batches of rows that are drawn at random."""
        main = self.noise_scale, self.sensitivity
        return any(s.is_sampled and (s.scale, s.sensitivity) == main for s in self.stages)

    def _describe_composition(self):
        """Return the rule of the ledger, or the reason why no rule applies."""
        if self.composition != "none":
            return self.composition
        if self.stages:
            return NO_LEDGER
        return NOTHING_RELEASED

    def _describe_datasets(self):
        """Return the name of the data set, or that of each call if the calls used several."""
        if len({(call.dataset, call.ledger) for call in self.calls}) < 2:
            return self.dataset
        places = []
        for call in self.calls:
            place = "none"
            if call.dataset:
                place = self._name_dataset(call)
            places.append((call, place))
        return _label_calls(places)

    def _name_dataset(self, call):
        """Return the name of a call's data set, with a number if several ledgers have the name."""
        ledgers = [other.ledger for other in self.calls if other.dataset == call.dataset]
        numbers = {ledger: i for i, ledger in enumerate(dict.fromkeys(ledgers), start=1)}
        if len(numbers) == 1:
            return repr(call.dataset)
        return f"{call.dataset!r} of ledger {numbers[call.ledger]}"

    def _describe_record(self):
        """Return the record of the charge in the ledger, or the reason why there is none."""
        if self.calls:
            return self._describe_records()
        if self.record:
            return self.record
        if not self.stages:
            return NOTHING_RELEASED
        if self.composition == "none":
            return NO_ACCOUNTANT
        if self.charges:
            return PLAN_NOT_CHARGED
        return CHARGED_LATER

    def _describe_records(self):
        """Return the records of all calls; consecutive calls in one data set share one text."""
        texts = []
        for range_of_calls in _consecutive(self.calls, _place_of):
            first = range_of_calls[0]
            text = first._describe_record()
            if first.record:
                records = [call.record for call in range_of_calls]
                if len(records) > MAX_RECORDS:
                    others = f"{count_of(len(records) - 2, 'other')} (see `charges`)"
                    records = [records[0], others, records[-1]]
                place = ""
                if first.dataset:
                    place = f"data set {self._name_dataset(first)}, "
                noun = "records"
                if len(range_of_calls) == 1:
                    noun = "record"
                text = f"{place}{noun} {', '.join(records)}"
            texts.append(f"{_name_calls(range_of_calls)}: {text}")
        return "; ".join(texts)

    def _describe_calls(self):
        """Return the number of calls and the cost of the last one; "" for a single call."""
        if len(self.charges) < 2:
            return ""
        last = self.charges[-1]
        cost = format_rounded_up(last.epsilon, last.delta)
        return (
            f"{count_of(len(self.charges), 'call')}; each one after the first starts from the "
            f"released weights; the last call alone is ({cost})-differentially private"
        )


def joined_statement(calls, epsilon, delta, unit, composition="basic"):
    """Return the statement of a model that was fitted by several consecutive calls.

    Parameters
    ----------
    calls : tuple of PrivacyStatement
        The statement of each call, in order. All have the same neighboring relation and unit.
    epsilon, delta : float
        The guarantee of all calls together.
    unit : {"row", "group", "person"}
        The privacy unit.
    composition : str, default="basic"
        Description of the rule by which the costs of the calls were added.

    Returns
    -------
    PrivacyStatement
    """
    last = calls[-1]
    if len(calls) == 1:
        sampler = _sampler_of_calls(calls, last.stages, unit)
        return replace(last, epsilon=epsilon, delta=delta, sampler=sampler)
    stages = ()
    for call in calls:
        stages = joined_calls(stages, call.stages)
    # The call whose noise hides the least.
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
        record=next((call.record for call in reversed(calls) if call.record), ""),
        ledger=next((call.ledger for call in reversed(calls) if call.ledger), ""),
        # One call may assume more, such as rows without an id that are of distinct persons.
        unit=max((call.unit for call in calls), key=len),
        trust_model=_join_distinct([call.trust_model for call in calls]),
        composition=_composition_of_calls(calls, composition),
        dataset=_join_distinct([call.dataset for call in calls if call.dataset]),
        part_of=_label_calls([(call, call.part_of) for call in calls if call.part_of]),
        stages=stages,
        charges=tuple(charge for call in calls for charge in call.charges),
        calls=calls,
    )


def _composition_of_calls(calls, rule):
    """Return a description of how the costs of the calls add up, also with those of other fits."""
    texts = list(dict.fromkeys(call.composition for call in calls))
    ledgers = {(call.dataset, call.ledger) for call in calls}
    # The text on a plan names the cost of a single call.
    if len(texts) == len(ledgers) == 1 and not texts[0].startswith(PART_OF_PLAN):
        return texts[0]
    places = []
    for call in calls:
        composition = call.composition
        if composition == "none":
            composition = "in no ledger"
        places.append((call, composition))
    return f"{rule}, over the calls; {_label_calls(places)}"


def _place_of(call):
    """Return the data set and ledger of a call, and whether the call was charged to it."""
    return call.dataset, call.ledger, bool(call.record)


def _consecutive(calls, key_of):
    """Return lists of consecutive calls with the same key; each call of `fit` has its own list."""
    ranges = []
    for call in calls:
        if ranges and key_of(ranges[-1][-1]) == key_of(call) and ranges[-1][-1].call_number:
            ranges[-1].append(call)
        else:
            ranges.append([call])
    return ranges


def _name_calls(calls):
    """Return the name of consecutive calls: `fit`, or partial_fit with the numbers of the calls."""
    first = calls[0].call_number
    last = calls[-1].call_number
    if first == 0:
        return "fit"
    if first == last:
        numbers = f"call {last}"
    else:
        numbers = f"call {first} to call {last}"
    return f"{numbers} of partial_fit"


def _label_calls(places):
    """Return the text of each call, with the name of the call or of the calls that share it."""
    texts = {id(call): text for call, text in places}
    ranges = _consecutive([call for call, _ in places], lambda call: texts[id(call)])
    return "; ".join(f"{_name_calls(calls)}: {texts[id(calls[0])]}" for calls in ranges)


def _noise_over_sensitivity(call):
    """Return the noise of a call relative to its sensitivity, which tells how much it hides."""
    if call.noise_multiplier is not None:
        return call.noise_multiplier
    if call.sensitivity:
        return call.noise_scale / call.sensitivity
    return 0.0


def _join_distinct(texts):
    return "; ".join(dict.fromkeys(texts))


def _join_with_counts(texts):
    """Return one text that lists the distinct texts, each with the number of its calls."""
    counts = Counter(texts)
    if len(counts) == 1:
        return texts[0]
    return "; ".join(f"{count_of(count, 'call')}: {text}" for text, count in counts.items())


def _sampler_of_calls(calls, stages, unit):
    """Return a description of the rows that all calls read, and of their overlap."""
    rows = for_unit(sampler_of(stages), unit)
    # Calls of `fit` have no `call_rows`.
    relations = _label_calls([(call, call.call_rows) for call in calls if call.call_rows])
    if relations:
        return f"{rows}; {relations}"
    return rows


def _charge_values(charge):
    """Return a charge as JSON values, without its user and purpose, which are not public."""
    values = dict(vars(charge))
    del values["user"], values["purpose"]
    if charge.part is None:
        part = None
    else:
        part = dict(vars(charge.part))
    return values | {"event": charge.event.to_json(), "part": part}
