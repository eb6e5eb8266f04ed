"""Rules that break privacy: small changes of a syntax tree, found by form and not by line.

A rule takes the tree of a module or of one function, changes it in place, and returns how often it
matched. Texts that a rule compares with are Python expressions, so that layout does not matter;
in those that are looked for, the name _ stands for any expression.
"""

import ast


class RuleError(Exception):
    """A mutation whose place or form is no longer in the source."""


def _parsed(expression):
    return ast.parse(expression, mode="eval").body


def _matches(pattern, node):
    """Whether a tree has the form of a pattern, in which the name _ stands for any expression."""
    if isinstance(pattern, ast.Name) and pattern.id == "_":
        return isinstance(node, ast.expr)
    if not isinstance(pattern, ast.AST):
        return type(pattern) is type(node) and pattern == node
    if type(pattern) is not type(node):
        return False
    for field in pattern._fields:
        if field == "ctx":
            continue
        one, other = getattr(pattern, field, None), getattr(node, field, None)
        pairs = zip(one, other, strict=False) if isinstance(one, list) else [(one, other)]
        if isinstance(one, list) and len(one) != len(other):
            return False
        if not all(_matches(*pair) for pair in pairs):
            return False
    return True


def _called(node):
    """The last part of the name that a call calls: clip of np.clip(...)."""
    if not isinstance(node, ast.Call):
        return None
    return getattr(node.func, "attr", getattr(node.func, "id", None))


def _mentions(node, pattern):
    """Whether an expression stands anywhere in a tree."""
    wanted = _parsed(pattern)
    return any(_matches(wanted, inner) for inner in ast.walk(node))


def _times(node, factor):
    return ast.BinOp(_parsed(repr(factor)), ast.Mult(), node)


class _Change(ast.NodeTransformer):
    """Replace every node for which `change` returns another one; inner nodes come first."""

    def __init__(self, change):
        self.change, self.count = change, 0

    def visit(self, node):
        node = self.generic_visit(node)
        changed = self.change(node)
        if changed is None:
            return node
        self.count += 1
        return changed


def _everywhere(change):
    def rule(tree):
        change_all = _Change(change)
        for field, value in ast.iter_fields(tree):
            if isinstance(value, list):
                changed = [change_all.visit(n) if isinstance(n, ast.AST) else n for n in value]
                setattr(tree, field, changed)
        return change_all.count

    return rule


def _named(rule, words):
    rule.words = words
    return rule


def result_times(factor):
    """What a function returns is scaled."""

    def change(node):
        if isinstance(node, ast.Return) and node.value is not None:
            return ast.Return(_times(node.value, factor))

    return _named(_everywhere(change), f"result × {factor:g}")


def assigned_times(name, factor):
    """What is assigned to a name is scaled."""

    def change(node):
        if isinstance(node, ast.Assign) and _mentions(node.targets[0], name):
            return ast.Assign(node.targets, _times(node.value, factor), lineno=node.lineno)

    return _named(_everywhere(change), f"{name} × {factor:g}")


def assigned(name, other):
    """Something else is assigned to a name."""

    def change(node):
        if isinstance(node, ast.Assign) and _matches(_parsed(name), node.targets[0]):
            return ast.Assign(node.targets, _parsed(other), lineno=node.lineno)

    return _named(_everywhere(change), f"{name} = {other}")


def argument_times(call, place, factor):
    """An argument of a call, by position or by keyword, is scaled."""

    def change(node):
        if _called(node) != call:
            return None
        if isinstance(place, int):
            node.args[place] = _times(node.args[place], factor)
            return node
        for keyword in node.keywords:
            if keyword.arg == place:
                keyword.value = _times(keyword.value, factor)
                return node

    return _named(_everywhere(change), f"argument {place} of {call} × {factor:g}")


def argument_put(call, place, other):
    """An argument of a call is replaced."""

    def change(node):
        if _called(node) == call:
            node.args[place] = _parsed(other)
            return node

    return _named(_everywhere(change), f"argument {place} of {call} is {other}")


def element_dropped(text):
    """An element of a list or a tuple is left out."""
    wanted = _parsed(text)

    def change(node):
        if isinstance(node, ast.List | ast.Tuple):
            kept = [e for e in node.elts if not _matches(wanted, e)]
            if len(kept) < len(node.elts):
                node.elts = kept
                return node

    return _named(_everywhere(change), f"element {text} dropped")


def call_dropped(call, keep=0):
    """A call is replaced by one of its arguments: no clip, no root, no rounding upwards."""

    def change(node):
        if _called(node) == call:
            return node.args[keep]

    return _named(_everywhere(change), f"{call}(…) dropped")


def statement_dropped(text):
    """A statement is left out."""
    wanted = ast.parse(text).body[0]

    def change(node):
        if _matches(wanted, node):
            return ast.Pass()

    return _named(_everywhere(change), f"statement {text} dropped")


def refusals_dropped(words=""):
    """What would raise an error, or one that says certain words, does not."""

    def change(node):
        if isinstance(node, ast.Raise) and words in ast.unparse(node):
            return ast.Pass()

    return _named(_everywhere(change), f"raise {words!r} dropped" if words else "raise dropped")


def share_forgotten():
    """One part of an epsilon that is split in two is the whole of it."""

    def change(node):
        if _called(node) == "split_epsilon":
            whole, share = node.args
            return ast.Tuple([ast.BinOp(share, ast.Mult(), whole), whole], ast.Load())

    return _named(_everywhere(change), "(share × epsilon, epsilon) for split_epsilon(…)")


def term_dropped(text):
    """One operand of a sum, a product or a quotient is left out."""
    wanted = _parsed(text)

    def change(node):
        if isinstance(node, ast.BinOp):
            if _matches(wanted, node.right):
                return node.left
            if _matches(wanted, node.left) and isinstance(node.op, ast.Add | ast.Mult):
                return node.right

    return _named(_everywhere(change), f"{text} dropped")


def call_renamed(call, other):
    """Another function of the same arguments is called: a max for a sum, a min for a max."""

    def change(node):
        if _called(node) == call:
            return ast.Call(_parsed(other), node.args, node.keywords)

    return _named(_everywhere(change), f"{other} for {call}")


def decided(text, value):
    """A condition that mentions an expression is decided once and for all."""

    def change(node):
        if isinstance(node, ast.If | ast.IfExp | ast.While) and _mentions(node.test, text):
            node.test = ast.Constant(value)
            return node

    return _named(_everywhere(change), f"condition on {text} always {value}")


def flipped(text):
    """The comparison that mentions an expression is turned round."""
    turned = {ast.Lt: ast.Gt, ast.Gt: ast.Lt, ast.LtE: ast.GtE, ast.GtE: ast.LtE}
    turned |= {ast.Eq: ast.NotEq, ast.NotEq: ast.Eq}

    def change(node):
        if isinstance(node, ast.Compare) and type(node.ops[0]) in turned and _mentions(node, text):
            node.ops[0] = turned[type(node.ops[0])]()
            return node

    return _named(_everywhere(change), f"comparison of {text} turned round")


def put_for(text, other):
    """One expression is put for another: an exact number for a noisy one, 1 for 2."""
    wanted = _parsed(text)

    def change(node):
        is_read = not isinstance(getattr(node, "ctx", ast.Load()), ast.Store)
        if is_read and _matches(wanted, node):
            return _parsed(other)

    return _named(_everywhere(change), f"{other} for {text}")


def entry_put(key, other):
    """The value of a key of a dict display is replaced."""
    wanted = _parsed(key)

    def change(node):
        if isinstance(node, ast.Dict):
            places = [i for i, k in enumerate(node.keys) if _matches(wanted, k)]
            for i in places:
                node.values[i] = _parsed(other)
            return node if places else None

    return _named(_everywhere(change), f"{other} for entry {key}")


def inserted(statement, above):
    """A statement is added before the one that mentions an expression."""

    def change(node):
        simple = ast.Expr | ast.Assign | ast.AugAssign | ast.Return
        if isinstance(node, simple) and _mentions(node, above):
            return [*ast.parse(statement).body, node]

    return _named(_everywhere(change), f"{statement} before {above}")


def both(*rules):
    """Several rules at once; each must match."""

    def rule(tree):
        return min([one(tree) for one in rules])

    return _named(rule, "; ".join(one.words for one in rules))


def mutated(source, where, rule):
    """Return the source of a module after a rule was applied to one of its functions.

    `where` is a qualified name, or "" for the statements of the module itself. Raises RuleError if
    there is no such function, or if the rule matches nothing in it or changes nothing.
    """
    tree = ast.parse(source)
    part = _find(tree, where)
    before = ast.unparse(part)
    if rule(part) == 0:
        raise RuleError(f"{rule.words!r} matches nothing in {where or 'the module'}")
    ast.fix_missing_locations(tree)
    if ast.unparse(part) == before:
        raise RuleError(f"{rule.words!r} changes nothing in {where or 'the module'}")
    return ast.unparse(tree)


def _find(tree, where):
    found = tree
    for name in filter(None, where.split(".")):
        named = ast.FunctionDef | ast.ClassDef
        inside = [n for n in found.body if isinstance(n, named) and n.name == name]
        if len(inside) != 1:
            raise RuleError(f"{where} was found {len(inside)} times")
        found = inside[0]
    return found
