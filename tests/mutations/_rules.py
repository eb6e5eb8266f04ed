"""Rules that break privacy: small changes of a syntax tree, found by form and not by line.

A rule takes the tree of a module or of one function, changes it in place, and returns how often it
matched. Texts that a rule compares with are Python expressions, so that layout does not matter.
"""

import ast


class RuleError(Exception):
    """A mutation whose place or form is no longer in the source."""


def _text(expression):
    return ast.unparse(ast.parse(expression, mode="eval"))


def _parsed(expression):
    return ast.parse(expression, mode="eval").body


def _called(node):
    """The last part of the name that a call calls: clip of np.clip(...)."""
    if not isinstance(node, ast.Call):
        return None
    return getattr(node.func, "attr", getattr(node.func, "id", None))


def _mentions(node, text):
    """Whether an expression stands anywhere in a tree."""
    try:
        wanted = _text(text)
    except SyntaxError:
        return False
    return any(isinstance(n, ast.expr) and ast.unparse(n) == wanted for n in ast.walk(node))


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
    wanted = _text(text)

    def change(node):
        if isinstance(node, ast.List | ast.Tuple):
            kept = [e for e in node.elts if ast.unparse(e) != wanted]
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
    """Leave out a statement, or all that mention an expression; an `if` goes with what it holds."""
    whole = ast.unparse(ast.parse(text))

    def change(node):
        if isinstance(node, ast.stmt) and ast.unparse(node) == whole:
            return ast.Pass()
        if isinstance(node, ast.If) and _mentions(node.test, text):
            return ast.Pass()

    return _named(_everywhere(change), f"`{text}` dropped")


def term_dropped(text):
    """One operand of a sum, a product or a quotient is left out."""
    wanted = _text(text)

    def change(node):
        if isinstance(node, ast.BinOp):
            if ast.unparse(node.right) == wanted:
                return node.left
            if ast.unparse(node.left) == wanted and isinstance(node.op, ast.Add | ast.Mult):
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
    wanted = _text(text)

    def change(node):
        is_read = not isinstance(getattr(node, "ctx", ast.Load()), ast.Store)
        if isinstance(node, ast.expr) and is_read and ast.unparse(node) == wanted:
            return _parsed(other)

    return _named(_everywhere(change), f"{other} for {text}")


def entry_put(key, other):
    """The value of a key of a dict display is replaced."""
    wanted = _text(key)

    def change(node):
        if isinstance(node, ast.Dict):
            places = [i for i, k in enumerate(node.keys) if k and ast.unparse(k) == wanted]
            for i in places:
                node.values[i] = _parsed(other)
            return node if places else None

    return _named(_everywhere(change), f"{other} for entry {key}")


def moved_up(text, above):
    """The statement that mentions one expression is done before the one that mentions another."""

    def rule(tree):
        count = 0
        for node in ast.walk(tree):
            body = getattr(node, "body", None)
            if not isinstance(body, list):
                continue
            late = [i for i, s in enumerate(body) if _is_simple(s) and _mentions(s, text)]
            early = [i for i, s in enumerate(body) if _is_simple(s) and _mentions(s, above)]
            if late and early and early[0] < late[0]:
                body.insert(early[0], body.pop(late[0]))
                count += 1
        return count

    return _named(rule, f"{text} before {above}")


def _is_simple(statement):
    return isinstance(statement, ast.Expr | ast.Assign | ast.AugAssign)


def inserted(statement, above):
    """A statement is added before the one that mentions an expression."""

    def change(node):
        if _is_simple(node) and _mentions(node, above):
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
    before = ast.unparse(tree)
    if rule(_find(tree, where)) == 0:
        raise RuleError(f"{rule.words!r} matches nothing in {where or 'the module'}")
    after = ast.unparse(ast.fix_missing_locations(tree))
    if after == before:
        raise RuleError(f"{rule.words!r} changes nothing in {where or 'the module'}")
    return after


def _find(tree, where):
    found = tree
    for name in filter(None, where.split(".")):
        named = ast.FunctionDef | ast.ClassDef
        inside = [n for n in found.body if isinstance(n, named) and n.name == name]
        if len(inside) != 1:
            raise RuleError(f"{where} was found {len(inside)} times")
        found = inside[0]
    return found
