"""Gradients: programs of values that compute the derivatives of others."""
