"""What a fitted estimator says about the privacy of what it published."""

from dataclasses import asdict, replace

from skdp.accounting._report import RELATION_WORDS
from skdp.utils._documents import PrintedDocument, Section
from skdp.utils._rounding import in_digits
from skdp.utils._values import FrozenValue

CENTRAL = "central: whoever fits sees the data, the world sees the fitted estimator"
LOCAL = "local: each row is noised by itself, whoever collects the rows sees noisy ones"
SEEDED = "YES: whoever knows the seed can take the noise away"
NO_LEDGER = "none: the release is in no ledger, what else was released must be added to it"
MORE = ("more", "to_dict() and skdp.privacy_report have the noise and the ledger's hash")


class PrivacyStatement(PrintedDocument, FrozenValue):
    """The guarantee that covers a fitted estimator's public attributes and predictions.

    Printing gives the promise as text; a notebook shows all of it as HTML, `to_dict` gives JSON
    values.

    Parameters
    ----------
    estimator : str
        The estimator's class.
    epsilon, delta : float
        The guarantee of this fit.
    relation : {"add_remove", "replace_one"}
        Which data sets are neighbours; add/remove is read as replacing a row by a null row.
    unit : str
        What is protected.
    mechanism : str
        The mechanism that made the release.
    noise_scale : float
        The scale of its noise: the standard deviation of a Gaussian, the scale of a Laplace
        distribution, sensitivity over epsilon for the Gamma-norm mechanism.
    sensitivity : float
        What the noise was calibrated to, in the mechanism's norm.
    composition : str
        How this fit's cost adds to the others in the ledger, or "none" without an accountant.
    sampler : str
        Which rows went into the release.
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

    # What the text leaves to those who check the mathematics or the ledger.
    of_the_noise = ("noise scale", "sensitivity", "record", "version")
    covered = "the public attributes of this fit and what is computed from them: predictions too"
    not_covered = (
        "scores on private rows, other steps of a pipeline, choices made by looking at the data, "
        "the time that fitting took; rows must be chosen by index and a public seed, which "
        "stratified folds are not"
    )

    def to_dict(self):
        """Return the statement as JSON values.

        Returns
        -------
        dict
        """
        bounds = {"covered": self.covered, "not_covered": self.not_covered}
        return asdict(self) | {"public": list(self.public)} | bounds

    def section(self):
        """Return all of it as a part of a document.

        Returns
        -------
        Section
        """
        cost = in_digits(self.epsilon, self.delta)
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
            "epsilon": in_digits(self.epsilon),
            "delta": in_digits(self.delta),
            "relation": RELATION_WORDS[self.relation],
            "noise_scale": f"{self.noise_scale:g}",
            "sensitivity": f"{self.sensitivity:g}",
            "composition": NO_LEDGER if self.composition == "none" else self.composition,
            "public": "; ".join(self.public) or "nothing",
            "seeded": SEEDED if self.seeded else "no",
            "record": self.record or "none: no accountant",
            "version": f"skdp {self.version}",
        }
        return [(name.replace("_", " "), words) for name, words in (self.to_dict() | said).items()]
