"""Tests of the front end of TensorFlow, which are skipped where it is not installed.

The folder is not called `tensorflow`, since tests/ is on the path.
"""

from __future__ import annotations

import os
import warnings

import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


@pytest.fixture(autouse=True)
def quiet():
    """TensorFlow and Keras warn of their own affairs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
