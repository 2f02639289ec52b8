#!/usr/bin/env bash
# Without CMake: builds plugins and programs with pkg-config and a compiler, and runs the tools.
#
# usage: hand.sh PREFIX LIBDIR

set -euo pipefail

prefix=$1 libdir=$2
fail() {
    echo "package: $*" >&2
    exit 1
}

"$prefix/bin/catena-train-mnist" --epochs 1 | tail -n 1
for program in catena catena-check catena-inspect catena-new; do
    "$prefix/bin/$program" --help >out
    head -n 1 out | grep -q "^usage: $program " || fail "$program --help"
    "$prefix/bin/$program" --version | grep -q "^$program [0-9]*[.][0-9rc.-]*, ABI " || fail "$program --version"
done

python=$prefix/lib/python3/dist-packages
if [[ -e $python/catena ]] && python3 -c 'import numpy' 2>/dev/null; then
    PYTHONPATH=$python python3 -c '
import catena, numpy
print(catena.functions.relu(numpy.float32([-1, 2])).array)' | grep -F '[0. 2.]' || fail "Python does not find it"
fi

if ! command -v pkg-config >/dev/null; then
    echo "package: there is no pkg-config: not tried"
    exit 0
fi
export PKG_CONFIG_PATH=$prefix/$libdir/pkgconfig
version=$(pkg-config --modversion catena-plugin)
[[ $version == $(pkg-config --modversion catena-host) ]] || fail "two versions"
read -ra plugin_flags < <(pkg-config --cflags --libs catena-plugin)
read -ra host_flags < <(pkg-config --cflags --libs catena-host)
examples=$prefix/share/catena/examples

mkdir plugins
"$CXX" -std=c++20 -O1 -fPIC -shared "$examples/plugin/mul_add/mul_add.cpp" -o plugins/mul_add.catena \
    "${plugin_flags[@]}"
"$CC" -std=c99 -O1 -fPIC -shared "$examples/plugin/mul_add_c/mul_add.c" -o plugins/mul_add_c.catena \
    "${plugin_flags[@]}"
chmod go-w plugins/*
[[ $(nm -D --defined-only plugins/mul_add.catena | grep -vc ' A ') == 2 ]] || fail "exports too much"
"$prefix/bin/catena-check" --only static --only load plugins/*.catena | tail -n 1
export CATENA_PLUGIN_PATH=$PWD/plugins
for name in org.example.mul_add org.example.c.mul_add; do
    "$prefix/bin/catena" describe $name | grep -F 'w = x * y + z' || fail "$name is not there"
done

cat >test.cpp <<'END'
#include <catena/testing.hpp>
#include <cstdio>
int main() {
    catena::testing::World world(PLUGIN);
    std::puts(conform(world, "org.example.mul_add").failures().c_str());
}
END
"$CXX" -std=c++20 test.cpp -o tested \
    -DPLUGIN='"plugins/mul_add.catena"' $(pkg-config --cflags --libs catena-testing)
./tested >out
grep -qF 'CATENA_TESTING_PLUGINS names the folder' out || fail "no word of where catena.mul may be"
CATENA_TESTING_PLUGINS=$(pkg-config --variable=plugindir catena-testing) ./tested >out
[[ -z $(<out) ]] || { cat out && fail "the test fails"; }

cat >main.cpp <<'END'
#include <catena/catena.hpp>
#include <cstdio>
int main() {
    const catena::Array x = catena::Array::from<float>({-1, 2}, {2});
    const catena::Array y = catena::PluginFunction("org.example.mul_add").forward(std::vector{x, x, x})[0];
    std::printf("%s\n", to_string(catena::functions::relu(y)).c_str());
}
END
"$CXX" -std=c++20 -O1 main.cpp -o main "${host_flags[@]}" -Wl,-rpath,"$(pkg-config --variable=libdir catena-host)"
./main | grep -F '[0, 6]' || fail "the program computes something else: $(./main)"
