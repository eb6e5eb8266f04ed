"""Reports on privacy: guarantees of models, budgets of data sets, and steps without a guarantee."""
