"""One decision tree, grown on released curves."""

from skdp.tree._decision_tree import DPDecisionTreeClassifier as DPDecisionTreeClassifier
from skdp.tree._decision_tree import Tree as Tree
