"""A decision tree that is grown from released shape functions."""

from skdp.tree._decision_tree import DPDecisionTreeClassifier, Tree

__all__ = ["DPDecisionTreeClassifier", "Tree"]
