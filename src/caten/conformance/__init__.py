"""`caten test-runtime`: does a runtime compute what the language means? Every operator, element type and feature,
one verdict each."""
