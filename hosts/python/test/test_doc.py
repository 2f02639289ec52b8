"""Runs the code of sdk/doc/python.md and of the package's README, block by block, in one namespace."""
import builtins
import glob
import keyword
import os
import pathlib
import re

import pytest

import catena

PAGE = pathlib.Path(__file__).resolve().parents[3] / "sdk/doc/python.md"


def blocks(page):
    """What each block needs, and its code, padded so that errors name the lines of the page."""
    text = page.read_text()
    for match in re.finditer(r"(?:<!-- needs: (\w+) -->\n)?```python\n(.*?)```", text, re.S):
        yield match[1], "\n" * text.count("\n", 0, match.start(2)) + match[2]


def test_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plugins = [pathlib.Path(folder) / "swish.catena"
               for folder in os.environ.get("CATENA_TEST_PLUGINS", "").split(":") if folder]
    plugin = next((file for file in plugins if file.exists()), None)
    if plugin:
        os.symlink(plugin, tmp_path / "swish.catena")
    ran, namespace = 0, {}
    for needs, code in blocks(PAGE):
        if needs == "torch":
            try:
                import torch  # noqa: F401
            except ImportError:
                continue
        if needs == "swish" and not plugin:
            continue
        exec(compile(code, str(PAGE), "exec"), namespace)
        ran += 1
    assert ran >= 7


def test_readme(capsys):
    for _, code in blocks(PAGE.parents[2] / "hosts/python/README.md"):
        exec(compile(code, "README.md", "exec"), {})
    assert capsys.readouterr().out.startswith("[[")


def test_names_in_tables_exist():
    """Names in the second column of tables "in X | here" are those of the package, or of Python."""
    package = pathlib.Path(catena.__file__).parent
    known = set(keyword.kwlist) | set(dir(builtins)) | {"np", "numpy", "array", "cupy"}
    for file in glob.glob(f"{package}/**/*.py*", recursive=True):
        if not file.endswith(".pyc"):
            known.update(re.findall(r"[A-Za-z_]\w*", pathlib.Path(file).read_text()))
    rows = re.findall(r"^\|.*\| (.*) \|$", PAGE.read_text(), re.M)
    assert len(rows) > 10
    for row in rows:
        for code in re.findall(r"`([^`]*)`", row):
            words = re.findall(r"[A-Za-z_]\w*", re.sub(r'"[^"]*"', "", code))
            assert [word for word in words if word not in known] == [], code


@pytest.mark.skipif(not PAGE.exists(), reason="the page is not installed")
def test_page_has_code():
    assert len(list(blocks(PAGE))) >= 9
