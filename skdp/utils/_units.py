"""Text that names the privacy unit: rows, or persons."""


class UnitText(str):
    """Text about rows, which also holds what it says where the unit is a person.

    A statement is composed of such texts and of names as they were given. Replacing a word in
    finished text would change names too: a step called "narrowed" contains "row".

    Parameters
    ----------
    write : callable
        Returns the text for the name of a unit, "row" or "person". It is called for both when the
        text is made.

    Attributes
    ----------
    of_persons : str
        The text where the unit is a person; the string itself is that of rows.

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
    text = str.__new__(cls, of_rows)
    text.of_persons = of_persons
    return text


def for_unit(text, unit):
    """Return a text for the unit "row", "person" or "group"; other strings are unchanged."""
    return getattr(text, "of_persons", str(text)) if unit == "person" else str(text)


ALL_ONCE = UnitText(lambda unit: f"all {unit}s, once")
