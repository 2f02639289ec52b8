#!/usr/bin/env bash
# Compiles each ABI header by itself, included twice, as C and C++, with every installed compiler.
#
# usage: headers.sh INCLUDE

set -euo pipefail

include=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
warnings=(-Wall -Wextra -Wpedantic -Wpadded -Werror)
variants=("" "-fshort-enums -funsigned-char")

count=0
while read -r header; do
    name=${header#"$include"/}
    for language in c cpp; do
        printf '#include "%s"\n#include "%s"\nextern int catena_header_test;\n' "$name" "$name" \
            >"$work/$(tr '/.' '__' <<<"$name").$language"
    done
    count=$((count + 1))
done < <(find "$include" -name '*.h' | sort)
if ((count == 0)); then
    echo "headers: expected *.h under $include, found none" >&2
    exit 1
fi

# compile COMPILER STANDARD: compiles all headers, each in a file of its own.
compile() {
    local language=c variant
    [[ $2 == c++* ]] && language=cpp
    for variant in "${variants[@]}"; do
        # shellcheck disable=SC2086 # the flags of a variant are words
        if ! (cd "$work" && "$1" "-std=$2" "${warnings[@]}" $variant -fsyntax-only -I "$include" \
            ./*."$language"); then
            echo "headers: $1 -std=$2 $variant does not compile them" >&2
            exit 1
        fi
    done
    runs=$((runs + 1))
}

runs=0
absent=()
for pair in "gcc g++" "clang clang++"; do
    read -r c cpp <<<"$pair"
    if command -v "$c" >/dev/null; then
        for standard in c99 c11 c17; do compile "$c" "$standard"; done
    else
        absent+=("$c")
    fi
    if command -v "$cpp" >/dev/null; then
        for standard in c++11 c++14 c++17 c++20; do compile "$cpp" "$standard"; done
    else
        absent+=("$cpp")
    fi
done
if ((runs == 0)); then
    echo "headers: expected gcc or clang, found neither" >&2
    exit 1
fi

# Tests the checks: a header with padding must fail.
printf 'struct catena_padded { char c; int i; };\n' >"$work/include.h"
printf '#include "include.h"\nstruct catena_padded catena_header_test;\n' >"$work/padded.c"
compiler=$(command -v gcc || command -v clang)
if "$compiler" -std=c99 "${warnings[@]}" -fsyntax-only -I "$work" "$work/padded.c" 2>/dev/null; then
    echo "headers: a padded struct was not found" >&2
    exit 1
fi
echo "headers: $count headers, $runs compilers and standards, ${#variants[@]} variants;" \
    "not here: ${absent[*]:-none}"
