"""Running a compiled operator against its reference: data, references, comparison, isolation."""
