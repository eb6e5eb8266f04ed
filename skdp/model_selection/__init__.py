"""Hyperparameter search and cross-validation inside a privacy budget."""

from skdp.model_selection._curves import DPScores as DPScores
from skdp.model_selection._curves import dp_cross_val_score as dp_cross_val_score
from skdp.model_selection._curves import dp_learning_curve as dp_learning_curve
from skdp.model_selection._curves import dp_validation_curve as dp_validation_curve
from skdp.model_selection._person_folds import PersonKFold as PersonKFold
from skdp.model_selection._person_folds import person_train_test_split as person_train_test_split
from skdp.model_selection._scorer import DPScorer as DPScorer
from skdp.model_selection._scorer import make_dp_scorer as make_dp_scorer
from skdp.model_selection._scores import BoundedScore as BoundedScore
from skdp.model_selection._scores import bounded_score as bounded_score
from skdp.model_selection._search import DPGridSearchCV as DPGridSearchCV
from skdp.model_selection._search import DPRandomizedSearchCV as DPRandomizedSearchCV
