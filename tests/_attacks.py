"""Attacks on released floats, and what they certify.

An attack looks at outputs for two neighboring data sets, picks on one half of them an event that
tells the two apart, and bounds on the other half, with exact binomial (Clopper-Pearson) limits,
the epsilon that any mechanism with these outputs must have. The attacks look only at what an
output's bits say beyond its magnitude:

- precision: the lowest set bit (is the output a multiple of an impossible power of two? Haney,
  Desfontaines, Hartman, Shrestha and Hay 2022);
- support: whether the textbook sampler ``loc -+ scale * log(U)`` with a 53-bit U can give this very
  output for either value (Mironov 2012);
- low bits: the low 10 bits of the significand, and of the output in units of the finest grid that
  holds all outputs, with a table of likelihood ratios;
- learned: a decision tree over all of these bits.

For an estimator, fit it often on two neighboring data sets and pass a row of public floats for
each fit.
"""

import math

import numpy as np
from scipy.stats import beta
from sklearn.tree import DecisionTreeClassifier

N_BITS = 10
_c_log = np.frompyfunc(math.log, 1, 1)


def epsilon_lower_bound(hits, n, false_hits, m, *, delta=0.0, confidence=0.999):
    """The epsilon that an event's two frequencies certify, at least 0.

    Parameters
    ----------
    hits, n : int
        How often the event was seen with one data set.
    false_hits, m : int
        How often with the other.
    delta : float, default=0.0
    confidence : float, default=0.999

    Returns
    -------
    float
    """
    alpha = (1.0 - confidence) / 2.0
    low = beta.ppf(alpha, hits, n - hits + 1) if hits else 0.0
    high = beta.ppf(1.0 - alpha, false_hits + 1, m - false_hits) if false_hits < m else 1.0
    return max(0.0, float(np.log(max(low - delta, 1e-300) / high)))


def lowest_set_bit(x):
    """The exponent e of the largest power of two of which x is a multiple; 2000 for zero."""
    mantissa, exponent = np.frexp(np.asarray(x, dtype=np.float64))
    whole = np.abs(np.ldexp(mantissa, 53)).astype(np.int64)
    trailing = np.frexp((whole & -whole).astype(np.float64))[1] - 1
    return np.where(whole == 0, 2000, exponent - 53 + trailing)


def significand_bits(x):
    """The low 10 bits of the significand of each float64."""
    return np.asarray(x, dtype=np.float64).view(np.int64) & (2**N_BITS - 1)


def grid_bits(x, exponent):
    """The low 10 bits of x in units of 2**exponent."""
    with np.errstate(over="ignore", invalid="ignore"):
        steps = np.ldexp(np.asarray(x, dtype=np.float64), -exponent)
        low = np.mod(np.floor(steps), 2.0**N_BITS)
    return np.where(np.isfinite(low), low, 0).astype(np.int64)


def in_textbook_support(x, loc, scale):
    """Whether ``loc -+ scale * log(U)`` gives x for some U that is a multiple of 2**-53.

    The candidates are the multiples of 2**-53 around ``exp(-|x - loc| / scale)``. The
    logarithm is the C library's, as in the sampler.
    """
    x = np.asarray(x, dtype=np.float64)
    center = np.exp(-np.abs(x - loc) / scale)
    found = np.zeros(x.shape, dtype=bool)
    nearest = np.rint(center * 2.0**53)
    for offset in range(-6, 7):
        u = (nearest + offset) * 2.0**-53
        valid = (u > 0) & (u <= 1)
        noise = scale * _c_log(np.where(valid, u, 1.0)).astype(np.float64)
        found |= valid & (((loc - noise) == x) | ((loc + noise) == x))
    return found


def _codes(train, test, values, scale):
    """Discrete features of outputs: name -> (codes for training, codes for certifying)."""
    exponent = int(lowest_set_bit(train).min())
    features = {
        "precision": lowest_set_bit,
        "low bits": significand_bits,
        "grid bits": lambda x: grid_bits(x, exponent),
    }
    if values is not None:

        def support(x):
            return sum((i + 1) * in_textbook_support(x, v, scale) for i, v in enumerate(values))

        features["support"] = support
    return {name: (f(train), f(test)) for name, f in features.items()}


def _table_scores(train_codes, train_labels, test_codes):
    """Log-likelihood ratios of codes, with half a count of smoothing."""
    codes = np.unique(train_codes)
    index = np.searchsorted(codes, train_codes)
    ones = np.bincount(index, train_labels, minlength=codes.size)
    zeros = np.bincount(index, 1 - train_labels, minlength=codes.size)
    ratios = np.log((ones + 0.5) / (zeros + 0.5))
    found = np.minimum(np.searchsorted(codes, test_codes), codes.size - 1)
    return ratios[index], np.where(codes[found] == test_codes, ratios[found], 0.0)


def _bit_matrix(features):
    columns = []
    for codes in features:
        columns.append(codes)
        columns.extend((codes >> i) & 1 for i in range(N_BITS))
    return np.stack(columns, axis=1)


def _learned_scores(codes, labels):
    train = _bit_matrix([pair[0].astype(np.int64) for pair in codes.values()])
    test = _bit_matrix([pair[1].astype(np.int64) for pair in codes.values()])
    model = DecisionTreeClassifier(max_leaf_nodes=64, min_samples_leaf=30, random_state=0)
    model.fit(train, labels)
    return model.predict_proba(train)[:, 1], model.predict_proba(test)[:, 1]


def _certify(train_scores, train_labels, test_scores, test_labels, delta, confidence):
    """Pick the threshold on the training half, certify it on the other."""
    best, event = -1.0, None
    for threshold in np.unique(np.quantile(train_scores, np.linspace(0, 1, 65))):
        inside = train_scores >= threshold
        counts = [int(np.sum(inside & (train_labels == label))) for label in (1, 0)]
        bound = epsilon_lower_bound(
            counts[0], np.sum(train_labels == 1), counts[1], np.sum(train_labels == 0), delta=delta
        )
        if bound > best:
            best, event = bound, threshold
    inside = test_scores >= event
    counts = [int(np.sum(inside & (test_labels == label))) for label in (1, 0)]
    sizes = [int(np.sum(test_labels == label)) for label in (1, 0)]
    return epsilon_lower_bound(
        counts[0], sizes[0], counts[1], sizes[1], delta=delta, confidence=confidence
    )


def attack_floats(first, second, *, values=None, scale=1.0, delta=0.0, confidence=0.999):
    """Run all attacks on one released float.

    Parameters
    ----------
    first, second : array-like of shape (n,)
        Outputs for two neighboring data sets.
    values : tuple of two floats, default=None
        The values before noise, known to the attacker; None leaves out the support attack.
    scale : float, default=1.0
        The noise scale that the support attack supposes.
    delta : float, default=0.0
        Of the claim.
    confidence : float, default=0.999
        Of all certified numbers jointly.

    Returns
    -------
    dict of str to float
        The epsilon that each attack certifies.
    """
    first, second = (np.asarray(x, dtype=np.float64).ravel() for x in (first, second))
    train = np.concatenate([first[::2], second[::2]])
    test = np.concatenate([first[1::2], second[1::2]])
    train_labels = np.repeat([1, 0], [first[::2].size, second[::2].size])
    test_labels = np.repeat([1, 0], [first[1::2].size, second[1::2].size])
    codes = _codes(train, test, values, scale)
    scores = {name: _table_scores(pair[0], train_labels, pair[1]) for name, pair in codes.items()}
    scores["learned"] = _learned_scores(codes, train_labels)
    each = 1.0 - (1.0 - confidence) / (2 * len(scores))
    return {
        name: max(
            _certify(a, train_labels, b, test_labels, delta, each),
            _certify(-a, 1 - train_labels, -b, 1 - test_labels, delta, each),
        )
        for name, (a, b) in scores.items()
    }


def certified_epsilon(first, second, *, delta=0.0, confidence=0.999):
    """The largest epsilon that the attacks certify on any of several public floats.

    Parameters
    ----------
    first, second : array-like of shape (n,) or (n, n_floats)
        Outputs for two neighboring data sets, a row for each run.
    delta : float, default=0.0
    confidence : float, default=0.999
        Of the result.

    Returns
    -------
    float
    """
    first, second = (np.asarray(x, dtype=np.float64).reshape(len(x), -1) for x in (first, second))
    each = 1.0 - (1.0 - confidence) / first.shape[1]
    columns = zip(first.T, second.T, strict=True)
    return max(max(attack_floats(a, b, delta=delta, confidence=each).values()) for a, b in columns)


def attack_choices(first, second, *, delta=0.0, confidence=0.999):
    """The epsilon that the frequencies of discrete outputs certify.

    Parameters
    ----------
    first, second : array-like of int, shape (n,)
        Outputs for two neighboring data sets.
    delta : float, default=0.0
    confidence : float, default=0.999

    Returns
    -------
    float
    """
    first, second = np.asarray(first), np.asarray(second)
    outputs = np.unique(np.concatenate([first, second]))
    each = 1.0 - (1.0 - confidence) / (2 * outputs.size)
    bounds = []
    for a, b in ((first, second), (second, first)):
        for output in outputs:
            hits, false_hits = int(np.sum(a == output)), int(np.sum(b == output))
            bounds.append(
                epsilon_lower_bound(hits, a.size, false_hits, b.size, delta=delta, confidence=each)
            )
    return max(bounds)
