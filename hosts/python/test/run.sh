#!/usr/bin/env bash
# Makes the wheel, or installs it into a virtual environment and runs tests there. Environments stay in
# BUILD/python for the next run.
#
# usage: run.sh wheel|package|numpy|chainer|torch|typing|versions|sanitized|quick BUILD SOURCE CPACK PYTHON
#   wheel     makes the wheel
#   package   runs test_package.py
#   numpy     runs all other tests with the newest NumPy; those that need Chainer or PyTorch are skipped
#   chainer   runs the tests that compare with Chainer 7.8.1, with NumPy 1.23
#   torch     runs the tests that compare with PyTorch, which tools/bench installs
#   typing    runs mypy and pyright on the programs in typing/, the examples and the code of python.md,
#             and ruff on all Python sources
#   versions  runs test_package.py with each version of Python that is installed
#   sanitized runs the tests with the libraries of a build with sanitizers: those of threads with the
#             thread sanitizer, all with others
#   quick     runs the tests of numpy with the package in the build folder

set -euo pipefail

kind=$1 build=$2 source=$3 cpack=$4 python=$5
folder=$build/python
tests=$source/hosts/python/test
[[ $(id -un) != "$(id -gn)" ]] || umask 002 # the default where each user has a group
export PYTHONDONTWRITEBYTECODE=1
unset PYTHONPATH PYTHONHOME
skip() {
    echo "python: skipped: $*"
    exit 77
}
# Makes an environment and installs the wheel, which needs nothing from PyPI.
environment() { # PYTHON NAME REQUIREMENT...
    "$source/tools/venv" --python "$1" "$folder/$2" "${@:3}" || skip "PyPI is not reachable"
    "$folder/$2/bin/pip" --quiet --disable-pip-version-check uninstall --yes catena 2>/dev/null
    "$folder/$2/bin/pip" --quiet --disable-pip-version-check install --no-index "${wheel[@]}"
}
run() { # NAME FILE...
    cd "$folder/empty" # Python imports from the current folder
    "$folder/$1/bin/pytest" --quiet -p no:cacheprovider --durations 3 "${@:2}"
}
version_of() { "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null; }
comparing_with() { grep -lE "import (as )?$1|importorskip\(\"$1" "$tests"/test_*.py || true; }

mkdir -p "$folder/empty"
if [[ $kind == wheel ]]; then
    rm -f "$folder"/*.whl
    if ! "$cpack" --config "$build/CPackConfig.cmake" -G External -B "$folder/out" >"$folder/log" 2>&1; then
        cat "$folder/log"
        ! grep -q "venv: pip could not install" "$folder/log" || skip "PyPI is not reachable"
        exit 1
    fi
    mv "$folder"/out/*.whl "$folder"
    rm -r "$folder/out"
    "$folder/wheel/bin/auditwheel" show "$folder"/catena-*.whl
    exit
fi

extras=(h5py matplotlib pillow)
if [[ $kind == quick ]]; then
    "$source/tools/venv" --python "$python" "$folder/quick" numpy pytest "${extras[@]}" ||
        skip "PyPI is not reachable"
    PYTHONPATH=$build/lib/python run quick "$tests" --ignore "$tests/test_package.py"
    exit
fi
if [[ $kind == sanitized ]]; then
    "$source/tools/venv" --python "$python" "$folder/sanitized" numpy pytest || skip "PyPI is not reachable"
    core=$(echo "$build"/lib/python/catena/_core*.so)
    # Python is not built with the sanitizer, whose library has to come first.
    LD_PRELOAD=$(ldd "$core" | awk '$1 ~ /^lib([alt]san|ubsan|stdc\+\+)\./ {print $3}' | paste -sd ' ')
    export LD_PRELOAD PYTHONPATH=$build/lib/python PYTHONMALLOC=malloc
    export ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0:allocator_may_return_null=1:detect_odr_violation=0
    # Freed memory that the sanitizer keeps would count as growth of the process.
    ASAN_OPTIONS+=:quarantine_size_mb=8
    # The fake stacks of GCC before 12.4 misalign vectors of AVX-512 (GCC's bug 110027).
    ASAN_OPTIONS+=:detect_stack_use_after_return=0
    files=("$tests" --ignore "$tests/test_package.py")
    if [[ $LD_PRELOAD == *tsan* ]]; then files=("$tests/test_threads.py" "$tests/test_lifetimes.py"); fi
    run sanitized "${files[@]}"
    exit
fi

wheel=("$folder"/catena-*.whl)
[[ -e ${wheel[0]} ]] || skip "there is no wheel: see python-wheel"
case $kind in
package)
    environment "$python" package numpy pytest
    run package "$tests/test_package.py"
    ;;
numpy)
    environment "$python" numpy numpy pytest "${extras[@]}"
    run numpy "$tests" --ignore "$tests/test_package.py"
    ;;
chainer)
    mapfile -t files < <(comparing_with chainer)
    ((${#files[@]} > 0)) || skip "no test compares with Chainer"
    for candidate in "$python" python3.11 python3.10; do
        [[ $(version_of "$candidate") != 3.1[01] ]] || break
    done
    [[ $(version_of "$candidate") == 3.1[01] ]] || skip "Chainer needs Python 3.10 or 3.11, there is none"
    environment "$candidate" chainer numpy==1.23.5 pytest "setuptools<60" wheel six typing_extensions \
        filelock "protobuf<3.21" "${extras[@]}"
    "$folder/chainer/bin/pip" --quiet --disable-pip-version-check install --no-build-isolation \
        chainer==7.8.1 || skip "PyPI is not reachable"
    run chainer "${files[@]}"
    ;;
torch)
    mapfile -t files < <(comparing_with torch)
    ((${#files[@]} > 0)) || skip "no test compares with PyTorch"
    torch=$source/build/torch/bin/python
    [[ -x $torch ]] || skip "there is no PyTorch in build/torch: see tools/bench"
    [[ $(version_of "$torch") == $(version_of "$python") ]] || skip "build/torch has another version of Python"
    environment "$python" torch pytest numpy
    PYTHONPATH=$("$torch" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    export PYTHONPATH
    run torch "${files[@]}"
    ;;
typing)
    environment "$python" typing numpy mypy "pyright[nodejs]" ruff==0.17.6
    mkdir -p "$folder/typed"
    cd "$folder/typed"
    rm -f -- *.py
    cp "$tests"/typing/*.py "$source"/hosts/python/catena/examples/[!_]*.py .
    awk '/^```/ {code = $0 == "```python"; next} code' "$source/sdk/doc/python.md" >page.py
    # PyTorch is not installed.
    printf "%s\n" "from typing import Any" "def __getattr__(name: str) -> Any: ..." >torch.pyi
    mypy=("$folder/typing/bin/mypy" --python-executable "$folder/typing/bin/python")
    failed=0
    "${mypy[@]}" --check-untyped-defs ./*.py || failed=1
    "${mypy[@]}" --strict programs.py strict.py || failed=1
    (cd "$source" && "$folder/typing/bin/ruff" check --quiet --no-cache .) || failed=1
    "$folder/typing/bin/pyright" --pythonpath "$folder/typing/bin/python" ./*.py || failed=1
    exit "$failed"
    ;;
versions)
    for candidate in python3.{10..19}; do
        version=$(version_of "$candidate") || continue
        [[ $version != $(version_of "$python") ]] || continue
        environment "$candidate" "$version" numpy pytest
        run "$version" "$tests/test_package.py"
        some=yes
    done
    [[ ${some:-} ]] || skip "there is one version of Python"
    ;;
esac
