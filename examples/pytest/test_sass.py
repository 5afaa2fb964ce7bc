"""Compares cubins of this repository's test data; put your own builds in their place."""

import pathlib

import pytest

CUBINS = pathlib.Path(__file__).parents[2] / "testdata" / "cubin" / "new" / "sm_90"


def test_line_information_does_not_change_code(sass_same):
    sass_same(CUBINS / "pair.cubin", CUBINS / "pair_lineinfo.cubin")


def test_a_changed_constant_is_found(sass_same):
    with pytest.raises(pytest.fail.Exception, match="offset: code"):
        sass_same(CUBINS / "pair.cubin", CUBINS / "pair_constant.cubin")


def test_renamed_kernel(sass_same):
    sass_same(CUBINS / "pair.cubin", CUBINS / "pair_renamed.cubin", ignore=["names"])


def test_nothing_to_compare_is_a_failure(sass_same):
    with pytest.raises(pytest.fail.Exception, match="could not tell"):
        sass_same(CUBINS / "nothing.cubin", CUBINS / "nothing.cubin")


def test_stable_listing(sass_listing, tmp_path):
    golden = tmp_path / "pair.sass"
    golden.write_text("")
    with pytest.raises(pytest.fail.Exception, match="the listing changed"):
        sass_listing(golden, CUBINS / "pair.cubin")
