#!/usr/bin/env bash
# Checks the fields and the files of a Debian package.
#
# usage: deb.sh FILE

set -euo pipefail

deb=$1
fail() {
    echo "package: $*" >&2
    exit 1
}
field() { dpkg-deb -f "$deb" "$1"; }

dpkg-deb --info "$deb" | sed -n 's/^ \(Depends\|Installed-Size\)/\1/p'
for name in Package Version Architecture Maintainer Section Priority Depends Description; do
    [[ -n $(field $name) ]] || fail "no $name"
done
for package in libc6 libstdc++6 libopenblas0 libzip4 libelf1 libnettle8 libacl1 libpcre2-8-0 libutf8proc2; do
    [[ $(field Depends) == *"$package"* ]] || fail "Depends: expected $package, got $(field Depends)"
done
[[ $(field Depends) != *catena* ]] || fail "Depends: on itself"
field Description | awk 'length > 80 { exit 1 }' || fail "Description: lines of more than 80"

files=$(mktemp)
trap 'rm "$files"' EXIT
dpkg-deb -c "$deb" >"$files"
for path in bin/catena bin/catena-check bin/catena-inspect bin/catena-new bin/catena-train-mnist \
    lib/libcatena-core.so.1 lib/libcatena-loader.so lib/libcatena-host.so lib/catena/plugins/cpu.catena include/catena/abi.h \
    include/catena/plugin.hpp include/catena/testing.hpp include/catena/catena.hpp \
    include/catena/functions.hpp lib/cmake/catena/catenaConfig.cmake lib/pkgconfig/catena-host.pc \
    share/catena/digits/README.md share/catena/templates/host/main.cpp share/doc/catena/copyright \
    share/doc/catena/README.md share/doc/catena/functions.md share/doc/catena/sdk/doc/cookbook.md \
    share/catena/examples/plugin/mul_add/mul_add.cpp; do
    grep -q " \./usr/$path\( ->.*\)\?\$" "$files" || fail "expected usr/$path"
done
# Root owns all files, others cannot write to them, and all are under /usr.
awk '$2 != "root/root" || substr($1, 1, 1) != "l" && $1 ~ /^.....w|^........w/' "$files" |
    grep . && fail "owners or modes"
grep -vE ' \./(usr/|$)' "$files" && fail "outside /usr"
exit 0
