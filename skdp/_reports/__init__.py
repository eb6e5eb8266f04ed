"""Reports on privacy: guarantees of models, budgets of data sets, and what is not covered."""
