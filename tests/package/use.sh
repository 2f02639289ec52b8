#!/usr/bin/env bash
# From an empty folder: a plugin in C++, one in C, and a program; built, tested, validated, and run
# together. The environment names compilers and a PATH, and nothing of catena.
#
# usage: use.sh PREFIX

set -euo pipefail

prefix=$1
fail() {
    echo "package: $*" >&2
    exit 1
}
quietly() { "$@" >log 2>&1 || { cat log && fail "failed: $*"; }; }

"$prefix/bin/catena-new" plugin soft_gate
"$prefix/bin/catena-new" plugin bump --lang c --id com.example.bump >/dev/null
"$prefix/bin/catena-new" host trainer >/dev/null
[[ $(grep -c . soft_gate/soft_gate.hpp) -le 25 ]] || fail "a function takes more than 25 lines"

for project in soft_gate bump trainer; do
    quietly cmake -G Ninja -S $project -B $project/build -DCMAKE_PREFIX_PATH="$prefix"
    quietly cmake --build $project/build
    grep -i 'warning' log && fail "$project: built with warnings"
    quietly ctest --test-dir $project/build --no-tests=error --output-on-failure
    grep -E '^ *[0-9]+/|tests passed' log
done
for plugin in soft_gate bump; do
    ctest --test-dir $plugin/build -N >log
    grep -q "$plugin-check" log || fail "$plugin: not validated"
    grep -qF "$prefix/bin/catena-check" $plugin/build/CTestTestfile.cmake ||
        fail "$plugin: validated by another catena-check"
done

modules=lib/catena/plugins
trainer/build/trainer --plugin soft_gate/build/$modules/soft_gate.catena \
    --plugin bump/build/$modules/bump.catena | tee out
grep -q '^org.example.soft_gate: y = x \* sigmoid(beta \* x)$' out || fail "soft_gate is not called"
grep -q '^com.example.bump: y = scale \* x / (1 + x^2)$' out || fail "bump is not called"
for name in catena.tanh org.example.soft_gate com.example.bump; do
    losses=$(sed -n "s/^trained with $name: loss \(.*\) -> \(.*\)\$/\1 \2/p" out)
    awk '{ exit !(NF == 2 && $2 < $1 / 5) }' <<<"$losses" || fail "$name: learns nothing: $losses"
done

# What a package is asked for that it does not have.
mkdir asks
cat >asks/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.25)
project(asks LANGUAGES CXX)
find_package(catena REQUIRED COMPONENTS plugin telepathy)
END
! cmake -G Ninja -S asks -B asks/build -DCMAKE_PREFIX_PATH="$prefix" >log 2>&1 ||
    fail "there is no component telepathy"
tr -s ' \n' ' ' <log | grep -q 'COMPONENTS: expected of abi, plugin, testing, core, host, got telepathy' ||
    { cat log && fail "a missing component: not named"; }
