#!/usr/bin/env bash
# Keeps the headers of the current minor of the ABI, and small plugins built with them. Run once,
# when the minor is released; kept files are never rebuilt.
#
# usage: tests/abi/keep.sh [FOLDER]     default: tests/abi/kept
#   CC, CXX  the compilers; default gcc and g++

set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
into=${1:-$root/tests/abi/kept}
include=$root/sdk/abi/include
number() { sed -n "s/^#define CATENA_ABI_$1 \([0-9]*\)u.*/\1/p" "$include/catena/abi/base.h"; }
version=$(number MAJOR).$(number MINOR)
if [[ -e $into/$version ]]; then
    echo "keep: $into/$version is there: what was released is never made anew" >&2
    exit 1
fi

sources=(
    mul_add:sdk/plugin/examples/mul_add/mul_add.cpp
    mul_add_c:sdk/plugin/examples/mul_add_c/mul_add.c
    squared_error_c:sdk/plugin/examples/squared_error_c/squared_error.c
    swish:sdk/plugin/test/swish.cpp
    state:tests/abi/samples/state.c
    device:tests/abi/samples/device.c
    formulas:tests/abi/samples/formulas.c
)
flags=(-Os -fPIC -fvisibility=hidden -ffunction-sections -fdata-sections)
link=(-shared -s -Wl,--gc-sections -Wl,-z,defs -Wl,-z,noseparate-code)
most_bytes=100000
# Allowed versions of symbols: up to glibc 2.14 and GCC 5, and exception_ptr of GCC 11.
old='GLIBC_2\.(2\.5|3(\.[0-9]+)?|4|14)|GLIBCXX_3\.4(\.[0-9]|\.1[0-9]|\.2[01])?|'
old+='CXXABI_1\.3(\.([0-9]|1[0-3]))?|GCC_3\.0'

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r "$include" "$work/include"
rm -r "$work/include/catena/abi/ext/draft" # drafts may change
python3 -B - "$root/tests/abi" "$work/include" "$version" <<'END'
import sys
sys.path.insert(0, sys.argv[1])
import layout
for path in layout.headers(sys.argv[2]):  # the kept headers are for compilers: without comments
    lines = layout.without_comments(path.read_text()).splitlines()
    text = "\n".join(line.rstrip() for line in lines if line.strip())
    path.write_text(f"/* A header of ABI {sys.argv[3]}, without its comments. */\n{text}\n")
END
for entry in "${sources[@]}"; do
    name=${entry%%:*} source=$root/${entry#*:}
    case $source in
    *.c) compiler=("${CC:-gcc}" -std=c99) sdk=() ;;
    *)
        compiler=("${CXX:-g++}" -std=c++20 -fvisibility-inlines-hidden -fno-gnu-unique)
        sdk=("$root"/sdk/plugin/src/*.cpp) # the sources of catena::plugin
        ;;
    esac
    "${compiler[@]}" "${flags[@]}" "${link[@]}" \
        -Wl,--version-script="$root/sdk/plugin/cmake/plugin.map" \
        -I "$include" -I "$root/sdk/plugin/include" "$source" "${sdk[@]}" -o "$work/$name.catena"
    bytes=$(stat -c %s "$work/$name.catena")
    if ((bytes > most_bytes)); then
        echo "keep: $name.catena: expected at most $most_bytes bytes, got $bytes" >&2
        exit 1
    fi
    # The plugin must load on old systems too, so it may need only old versions of symbols.
    new=$(objdump -T "$work/$name.catena" | grep -oE '(GLIBC|GLIBCXX|CXXABI|GCC)_[0-9.]+' |
        sort -u | grep -vxE "$old" || true)
    if [[ $new ]]; then
        echo "keep: $name.catena needs newer libraries than it should: ${new//$'\n'/ }" >&2
        exit 1
    fi
done
{
    echo "Catena ABI $version, kept on $(date -u +%Y-%m-%d) on $(uname -m) by tests/abi/keep.sh."
    echo "Compilers: $(${CC:-gcc} --version | head -1); $(${CXX:-g++} --version | head -1)."
    echo "Flags: ${flags[*]} ${link[*]}."
    echo "Sources, as they were then:"
    for entry in "${sources[@]}"; do
        hash=$(sha256sum <"$root/${entry#*:}")
        echo "  ${hash:0:16}... ${entry#*:} -> ${entry%%:*}.catena"
    done
} >"$work/MADE"
sums=$(cd "$work" && find . -type f | sed 's|^\./||' | LC_ALL=C sort | xargs sha256sum)
echo "$sums" >"$work/SHA256SUMS"
chmod -x "$work"/*.catena
mkdir -p "$into/$version"
cp -r "$work"/* "$into/$version/"
echo "keep: $into/$version"
