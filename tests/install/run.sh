#!/usr/bin/env bash
# Installs catena, moves the installation, and uses it: runs a program, builds a third-party
# project, and checks the error if the plugins are missing.
#
# usage: run.sh CMAKE BUILD SOURCE LIBDIR CXX CC

set -euo pipefail

cmake=$1 build=$2 source=$3 libdir=$4 cxx=$5 cc=$6
unset "${!CATENA_@}" # ignores the user's settings and, below, plugins
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_CACHE_HOME=$work/cache XDG_DATA_HOME=$work/data
fail() {
    echo "install: $*" >&2
    exit 1
}

"$cmake" --install "$build" --prefix "$work/first" >/dev/null
mv "$work/first" "$work/moved"
prefix=$work/moved
cd "$work"

if grep -rlF "$build" "$prefix/$libdir/cmake"; then
    fail "the package names the build folder"
fi
for file in "$prefix"/bin/* "$prefix/$libdir"/*.so "$prefix/$libdir"/catena/plugins/*; do
    if readelf -dW "$file" | grep -E 'R(UN)?PATH' | grep -F "$build"; then
        fail "$file: finds its libraries in the build folder"
    fi
done

cp -r "$source/tests/install/consumer" source
install -m 644 "$prefix/$libdir/catena/plugins/activation.catena" source
"$cmake" -G Ninja -S source -B consumer -DCMAKE_PREFIX_PATH="$prefix" \
    -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_C_COMPILER="$cc" \
    -DSDK="$source/sdk" >consumer.log || { cat consumer.log; exit 1; }
"$cmake" --build consumer >consumer.log || { cat consumer.log; exit 1; }
consumer/consumer consumer/lib/catena/plugins

"$prefix/bin/catena-train-mnist" --epochs 1 >train.log 2>&1 || { cat train.log; exit 1; }
tail -n 1 train.log

rm -r "$prefix/$libdir/catena/plugins"
status=0
"$prefix/bin/catena-train-mnist" --epochs 1 >gone.log 2>&1 || status=$?
cat gone.log
((status == 1)) || fail "without plugins: expected exit status 1, got $status"
grep -q "no plugin has the function catena.linear" gone.log || fail "without plugins: what is missing?"
grep -q "looked in .*/$libdir/catena/plugins" gone.log || fail "without plugins: where was looked?"
