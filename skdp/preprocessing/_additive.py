"""Which noise sums and counts get, from public quantities alone."""

from skdp.mechanisms import GaussianMechanism, GeometricMechanism, LaplaceMechanism
from skdp.mechanisms._plan import bounded_noise
from skdp.utils._validation import check_choice


def additive_mechanism(name, guarantee, *, l1, l2, size, integers=False):
    """Return the mechanism that adds noise to a vector.

    Parameters
    ----------
    name : {"auto", "laplace", "gaussian"}
        "auto" is the one whose noise has the smaller standard deviation.
    guarantee : Guarantee
    l1, l2 : float
        Sensitivities of the whole vector.
    size : int
        Its length.
    integers : bool, default=False
        Whether it holds integers: Laplace noise is then discrete.

    Raises
    ------
    ValueError
        If the name is unknown, "gaussian" has no delta, or epsilon is too small for the vector.
    """
    epsilon, delta = guarantee.epsilon, guarantee.delta
    check_choice(name, "mechanism", ("auto", "laplace", "gaussian"))
    if name == "gaussian" and delta == 0.0:
        raise ValueError("mechanism='gaussian' needs delta > 0")
    choices = []
    if name != "gaussian":
        whole = GeometricMechanism(epsilon, round(l1)) if integers else None
        choices.append(whole or LaplaceMechanism(epsilon, l1))
    if name != "laplace" and delta > 0.0:
        choices.append(GaussianMechanism(epsilon, delta, l2))
    for mechanism in choices:
        mechanism.check_size(size)
    return min(choices, key=lambda mechanism: mechanism.deviation(size))


def plan_cell_weights(n_columns, guarantee, *, whole):
    """Plan noise on the cells of the tables of `n_columns` columns.

    A row adds weights of at least 0 that sum to 1, or nothing, to each table: m n_columns in L1
    norm and sqrt(m n_columns) in L2 norm between neighbours, with m = 1 under add/remove and 2
    under replace-one. The weights' sums must be exact.

    Parameters
    ----------
    n_columns : int
    guarantee : Guarantee
        delta = 0 takes Laplace noise, a positive one Gaussian noise.
    whole : bool
        Whether the weights of a row are 0 or 1; by shares they are no whole numbers.

    Returns
    -------
    GeometricMechanism, LaplaceMechanism or GaussianMechanism
    """
    moved = guarantee.neighbours.rows_moved * n_columns
    if whole and guarantee.delta == 0.0 and guarantee.neighbours.unit != "person":
        return GeometricMechanism(guarantee.epsilon, moved)
    return bounded_noise(guarantee, moved)
