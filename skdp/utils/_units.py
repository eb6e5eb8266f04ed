"""Text that depends on the privacy unit: rows or persons."""


class UnitText(str):
    """Text about rows, with an attribute for the text about persons.

    A statement is composed of such texts and of user-chosen names. Replacing "row" by "person" in a
    finished text would also change names: a step called "narrowed" contains "row".

    Parameters
    ----------
    write : callable
        Function of the name of a unit, "row" or "person", that returns the text. It is called for
        both when the object is created.

    Attributes
    ----------
    of_persons : str
        The text if the unit is a person; the string itself is the text about rows.

    Examples
    --------
    >>> from skdp.utils import UnitText
    >>> text = UnitText(lambda unit: f"the number of {unit}s")
    >>> str(text), text.of_persons
    ('the number of rows', 'the number of persons')
    """

    def __new__(cls, write):
        return _unit_text(cls, write("row"), write("person"))

    def __reduce__(self):
        return _unit_text, (type(self), str(self), self.of_persons)


def _unit_text(cls, of_rows, of_persons):
    """Return the `UnitText` of two texts."""
    text = str.__new__(cls, of_rows)
    text.of_persons = of_persons
    return text


def for_unit(text, unit):
    """Return the text for the unit "row", "person" or "group"; other strings are unchanged."""
    if unit == "person":
        return getattr(text, "of_persons", str(text))
    return str(text)


ALL_ONCE = UnitText(lambda unit: f"all {unit}s, once")
# For a stage with several releases.
ALL_IN_EACH = UnitText(lambda unit: f"all {unit}s, in each release")
