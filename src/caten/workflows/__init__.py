"""Test, benchmark and tune whole specs: what the commands and the Python functions share."""
