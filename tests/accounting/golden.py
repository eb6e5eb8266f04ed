"""The golden file's rows as events."""

import csv
import json
import math
from pathlib import Path

from skdp.accounting import (
    ZCDP,
    ApproximateDP,
    DiscreteGaussian,
    DiscreteLaplace,
    ExponentialMechanism,
    Gaussian,
    Laplace,
    PoissonSampled,
    PureDP,
    RandomizedResponse,
    RandomStopping,
    SampledWithoutReplacement,
)


def _response(row):
    noise, buckets = row["noise_parameter"], row["num_buckets"]
    other = noise / buckets
    return RandomizedResponse(math.log((1 - noise + other) / other), buckets)


def _part(row):
    kinds = {"laplace": Laplace, "gaussian": Gaussian}
    event = kinds[row["mechanism"]](row["par"])
    return (PoissonSampled(row["q"], event) if row["q"] < 1 else event) * row["steps"]


def _without_replacement(row):
    # The file's sigma is relative to the replacement sensitivity, twice the clip norm.
    size = round(1 / row["q"])
    return SampledWithoutReplacement(100 * size, 100, Gaussian(2 * row["sigma"]))


def _stopping(row):
    base = Gaussian(4.0) if "gaussian" in row["base"] else Laplace(0.1)
    return RandomStopping(base, row["mean"], float(row["shape"]))


MAKERS = {
    "gaussian": lambda row: Gaussian(row["sigma"]),
    "laplace": lambda row: Laplace(row["eps0"]),
    "pure_dp": lambda row: PureDP(row["eps0"]),
    "approx_dp": lambda row: ApproximateDP(row["eps0"], row["delta0"]),
    "randomized_response": _response,
    "discrete_gaussian": lambda row: DiscreteGaussian(row["sigma"], row["sensitivity"]),
    "discrete_laplace": lambda row: DiscreteLaplace(1 / row["a"], row["sensitivity"]),
    "poisson_gaussian": lambda row: PoissonSampled(row["q"], Gaussian(row["sigma"])),
    "poisson_laplace": lambda row: PoissonSampled(row["q"], Laplace(row["eps0"])),
    "wor_gaussian": _without_replacement,
    "zcdp": lambda row: ZCDP(row["rho"]),
    "exponential_mechanism": lambda row: ExponentialMechanism(row["eps_range"]),
    "repeat_and_select": _stopping,
}


def rows():
    """(id, event, relation, delta, reference, lower) of every row that states an event."""
    with open(Path(__file__).with_name("golden.csv"), newline="") as file:
        for row in csv.DictReader(file):
            parameters, kind = json.loads(row["params_json"]), row["mechanism"]
            if kind.endswith("_calibrate"):
                continue
            if kind == "composed":
                first, *rest = [_part(part) for part in parameters]
                event, relation = sum(rest, first), "add_remove"
            else:
                event = MAKERS[kind](parameters) * parameters.get("steps", 1)
                default = "replace_one" if "response" in kind else "add_remove"
                relation = parameters.get("neighbors", default)
            yield (
                row["setting_id"],
                event,
                relation,
                float(row["delta"]),
                float(row["eps_reference"]),
                float(row["eps_lower"]),
            )
