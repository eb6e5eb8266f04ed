"""Accuracy of DPSGDClassifier at its defaults, and of each regime.

Usage: SKDP_DATA=folder python docs/benchmarks/dpsgd_utility.py [fits] [tables]

Tables: adult, adult_bins, bank_marketing, credit_default (encoded in ``_tables.py``), digits
(scikit-learn's, rows of norm 1, three quarters train), kdd (``kddcup99_10pct.csv.gz``: public
categories, rates as they are, counts on a logarithmic scale, rows of norm 1; a tenth is held out).
delta = 1e-5 and 0 under add/remove; means of `fits` (10) fits. Everything is at its default but
epsilon, delta and, in the rows that say so, the sampling. The constants of the defaults were
chosen with these tables in view.
"""

import csv
import gzip
import os
import sys
import time
from pathlib import Path

import numpy as np
from _tables import load, one_hot
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from skdp import DPSGDClassifier

DELTA = 1e-5
TABLES = ("adult", "adult_bins", "bank_marketing", "credit_default", "digits", "kdd")
EPSILONS = {"adult": (0.1, 0.5, 1.0, 4.0), "digits": (1.0, 4.0, 8.0), "kdd": (0.1, 1.0)}

KDD_CATEGORIES = {
    "protocol_type": "icmp tcp udp",
    "flag": "OTH REJ RSTO RSTOS0 RSTR S0 S1 S2 S3 SF SH",
    "service": "IRC X11 Z39_50 auth bgp courier csnet_ns ctf daytime discard domain domain_u echo "
    "eco_i ecr_i efs exec finger ftp ftp_data gopher hostnames http http_443 imap4 iso_tsap klogin "
    "kshell ldap link login mtp name netbios_dgm netbios_ns netbios_ssn netstat nnsp nntp ntp_u "
    "other pm_dump pop_2 pop_3 printer private red_i remote_job rje shell smtp sql_net ssh sunrpc "
    "supdup systat telnet tftp_u tim_i time urh_i urp_i uucp uucp_path vmnet whois",
}
KDD_LARGEST = {"duration": 1e5, "src_bytes": 1e9, "dst_bytes": 1e9, "count": 511}
KDD_LARGEST |= {"srv_count": 511, "dst_host_count": 255, "dst_host_srv_count": 255}
KDD_OTHER_COUNTS = 1e4


def load_kdd():
    path = Path(os.environ["SKDP_DATA"]) / "kddcup99_10pct.csv.gz"
    with gzip.open(path, "rt", newline="") as file:
        rows = csv.reader(file)
        names = next(rows)
        columns = dict(zip(names, zip(*rows, strict=True), strict=True))
    y = np.array(columns.pop("target"), dtype=int)
    parts = []
    for name, values in columns.items():
        if name in KDD_CATEGORIES:
            parts.append(one_hot(values, KDD_CATEGORIES[name].split()).astype(np.float32))
            continue
        numbers = np.array(values, dtype=np.float64)
        if not name.endswith("_rate"):
            largest = KDD_LARGEST.get(name, KDD_OTHER_COUNTS)
            numbers = np.log1p(np.clip(numbers, 0, largest)) / np.log1p(largest)
        parts.append(numbers.astype(np.float32)[:, None])
    X = np.hstack(parts)
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-6)
    order = np.random.default_rng(0).permutation(len(y))
    train, test = np.split(order, [9 * len(y) // 10])
    return X[train], y[train], X[test], y[test]


def load_table(name):
    """Return X, y, X_test, y_test."""
    if name == "kdd":
        return load_kdd()
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        X, X_test, y, y_test = train_test_split(X, y, random_state=0)
        return X, y, X_test, y_test
    return load(name.removesuffix("_bins"), bins=name.endswith("_bins"))


def measure(model, X, y):
    scores = model.decision_function(X)
    if scores.ndim == 2:
        return np.mean(scores.argmax(axis=1) == y), np.nan
    return np.mean((scores > 0) == y), roc_auc_score(y, scores)


def show(words, results, seconds=None):
    results = np.array(results)
    mean, root = results.mean(axis=0), np.sqrt(len(results))
    error = results.std(axis=0, ddof=1) / root if len(results) > 1 else (0.0, 0.0)
    cells = [f"{m:.4f} ± {e:.4f}" if m == m else " " * 15 for m, e in zip(mean, error, strict=True)]
    time_of_fit = "" if seconds is None else f"   {seconds:6.2f}"
    print(f"  {words:<48} {'   '.join(cells)}{time_of_fit}", flush=True)


def private_row(table, fits, epsilon, **settings):
    X, y, *test = table
    results, times = [], []
    for _ in range(fits):
        start = time.perf_counter()
        model = DPSGDClassifier(epsilon, **settings).fit(X, y)
        times.append(time.perf_counter() - start)
        results.append(measure(model, *test))
    words = f"δ = {settings['delta']:g}, ε = {epsilon:g}, {model.sampling_}, {model.n_iter_} epochs"
    show(words, results, np.median(times))


def main():
    arguments = sys.argv[1:]
    fits = int(next((a for a in arguments if a.isdigit()), 10))
    for name in [a for a in arguments if a in TABLES] or TABLES:
        table = load_table(name)
        X, y, X_test, y_test = table
        print(f"\n{name}: {len(y)} rows, {X.shape[1]} columns, {len(y_test)} to test on")
        print(f"  {'':<48} accuracy (± s.e.)   AUC (± s.e.)      seconds")
        open_model = LogisticRegression(C=100.0, max_iter=500).fit(X, y)
        show("without privacy, C = 100", [measure(open_model, X_test, y_test)])
        for epsilon in EPSILONS.get(name, (0.1, 1.0)):
            private_row(table, fits, epsilon, delta=DELTA)
            if name in ("adult", "digits", "kdd"):
                private_row(table, fits, epsilon, delta=DELTA, sampling="poisson")
                private_row(table, fits, epsilon, delta=0.0)
                private_row(table, fits, epsilon, delta=0.0, sampling="without_replacement")


if __name__ == "__main__":
    main()
