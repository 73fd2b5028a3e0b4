"""Comparing results, running the conformance corpus, making random programs: tools for tests and for users."""
