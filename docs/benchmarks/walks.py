"""How far a reader walks: the files that one call visits, and the changes from file to file.

Usage: python docs/benchmarks/walks.py [pairs]

For five calls it prints how many files of skdp run at least one function, how often the next call
of a function of skdp lies in another file than the last one, and how often a search's estimator is
fitted; then, if asked, the most frequent pairs of files. Each call is made once before it is
counted, so that imports and caches do not count.
"""

import sys
import warnings
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np

import skdp
from skdp import (
    DPGridSearchCV,
    DPLogisticRegression,
    DPSGDClassifier,
    DPStandardScaler,
    PrivacyAccountant,
)
from skdp.accounting import PureDP

FOLDER = str(Path(skdp.__file__).parent)


class Walk:
    """A profiler that notes the files of skdp in the order in which they are entered."""

    def __init__(self):
        self.files, self.fits = [], 0

    def __call__(self, frame, event, argument):
        file = frame.f_code.co_filename
        if event != "call" or not file.startswith(FOLDER):
            return
        if self.files[-1:] != [file]:
            self.files.append(file)
        estimator = frame.f_locals.get("self")
        self.fits += frame.f_code.co_name == "fit" and type(estimator) is DPLogisticRegression


def walk(call):
    call()
    counted = Walk()
    sys.setprofile(counted)
    try:
        call()
    finally:
        sys.setprofile(None)
    return counted


def make_calls():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 5))
    y = (X[:, 0] > 0).astype(int)
    accountant = PrivacyAccountant(epsilon=1e6, delta=0.5)
    options = {"epsilon": 1.0, "accountant": accountant}
    scaler = DPStandardScaler(bounds=(-3, 3), **options)
    logistic = DPLogisticRegression(classes=[0, 1], **options)
    sgd = DPSGDClassifier(classes=[0, 1], **options)
    search = DPGridSearchCV(DPLogisticRegression(classes=[0, 1]), {"C": [0.1, 1.0]}, **options)
    return {
        "PrivacyAccountant.charge": lambda: accountant.charge(PureDP(0.1), label="a"),
        "DPStandardScaler.fit": lambda: scaler.fit(X, y),
        "DPLogisticRegression.fit": lambda: logistic.fit(X, y),
        "DPSGDClassifier.fit": lambda: sgd.fit(X, y),
        "DPGridSearchCV.fit": lambda: search.fit(X, y),
    }


def main(n_pairs=0):
    warnings.simplefilter("ignore")
    for name, call in make_calls().items():
        counted = walk(call)
        files, changes = len(set(counted.files)), len(counted.files)
        fits = f", {counted.fits} fits" if "Search" in name else ""
        print(f"{name:26} {files:3} files, {changes:7,} changes{fits}")
        for (last, file), times in Counter(pairwise(counted.files)).most_common(n_pairs):
            print(f"{times:10,}  {last[len(FOLDER) + 1 :]} -> {file[len(FOLDER) + 1 :]}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
