"""Fixtures for pytest that compare compiled GPU code with golden files.

sass_same(golden, built, level="code", ignore=()) fails with the report of `cupatch diff`.
sass_listing(golden, built) compares a stable listing with a text file.
"""

import difflib
import os
import pathlib
import shutil
import subprocess

import pytest

CUPATCH = os.environ.get("CUPATCH", "cupatch")


def pytest_addoption(parser):
    parser.addoption("--update-sass", action="store_true", help="write golden SASS files anew")


def run(*args):
    """Runs cupatch and returns its exit status and output."""
    p = subprocess.run([CUPATCH, *map(str, args)], capture_output=True, text=True, check=False)
    return p.returncode, p.stdout, p.stderr


@pytest.fixture
def sass_same(request):
    """Returns a function that fails unless two files hold the same code."""

    def same(golden, built, level="code", ignore=()):
        if request.config.getoption("--update-sass"):
            pathlib.Path(golden).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(built, golden)
            return
        args = ["diff", "--level", level, golden, built]
        if ignore:
            args[1:1] = ["--ignore", ",".join(ignore)]
        code, out, err = run(*args)
        if code == 1:
            pytest.fail(f"the code of {built} is not that of {golden}\n{out}", pytrace=False)
        if code != 0:  # unreadable, or nothing was compared: never a pass
            pytest.fail(f"cupatch diff could not tell\n{out}{err}", pytrace=False)

    return same


@pytest.fixture
def sass_listing(request):
    """Returns a function that fails unless a stable listing is the golden one."""

    def listing(golden, built, *options):
        code, out, err = run("dis", "-q", "--stable", *options, built)
        if code != 0:
            pytest.fail(f"cupatch dis failed\n{err}", pytrace=False)
        golden = pathlib.Path(golden)
        if request.config.getoption("--update-sass"):
            golden.parent.mkdir(parents=True, exist_ok=True)
            golden.write_text(out)
            return
        want = golden.read_text()
        if out != want:
            lines = difflib.unified_diff(want.splitlines(), out.splitlines(), str(golden), str(built), lineterm="")
            pytest.fail("the listing changed\n" + "\n".join(lines), pytrace=False)

    return listing
