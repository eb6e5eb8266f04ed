"""Other libraries' tools around private estimators: one registry, and the rules for its entries.

A tool appears in two places. As a *step* of a pipeline, or a wrapper in one, it is an object, and
the question is what it learns from its rows. As a *caller*, it is a call around a private fit, and
the question is what it computes from the same rows and how it uses them. One entry per tool
contains both answers.

- `_entries.py`: the classes of the entries, `Tool`, `KnownStep` and `KnownCaller`.
- `_sklearn_steps.py`: the entries of scikit-learn classes that are known only as steps;
  `_sklearn_tools.py`: of its tools; `_library_tools.py`: of other libraries; `_entry_kinds.py`:
  entries that several tools share.
- `_registry.py`: the entry of a class, or of a function of a module.
- `_step_conditions.py`: conditions on a step's parameters, and the widths of outputs.
- `_call_problems.py`, `_scores_and_folds.py`: problems of one call, from its local variables.
- `_advice.py`: texts on what to write instead.
- `_parts.py`, `_functions.py`: estimators inside an object; functions of single rows.

Classes and modules are named by strings, so no other library is imported.
"""
