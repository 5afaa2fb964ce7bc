from sass import pytest_addoption, sass_listing, sass_same  # noqa: F401
