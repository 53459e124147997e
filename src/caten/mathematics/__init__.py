"""The mathematics of operators: exact evaluation, decompositions, elementary functions on scalars and vectors."""
