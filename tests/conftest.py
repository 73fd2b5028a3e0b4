"""Makes tests/support.py importable from every test folder."""
