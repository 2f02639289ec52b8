#!/usr/bin/env bash
# Starts with an empty folder: creates a plugin in C++, one in C and a program; builds, tests and
# checks them, and runs them together. The environment has no settings of catena.
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

# Installed plugins are found; a file named by --plugin has priority over the installed copy and
# over the same file in the path. A function that does not fit into a net is called and reported.
for project in soft_gate bump; do
    quietly cmake --install $project/build
    grep -qF "$HOME/.local/share/catena/plugins/$project.catena" log || { cat log && fail "installed elsewhere"; }
done
"$prefix/bin/catena" plugins >out
for name in org.example.soft_gate com.example.bump; do
    grep -q "^ *loaded *$name " out || { cat out && fail "$name is installed, and not found"; }
done
quietly cmake --install bump/build --prefix "$PWD/other"
[[ -f $(echo other/lib*/catena/plugins/bump.catena) ]] || { cat log && fail "not below the prefix"; }
mkdir cookbook
cat >cookbook/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.25)
project(cookbook LANGUAGES CXX)
find_package(catena REQUIRED COMPONENTS plugin testing)
catena_add_plugin(NAME log_sum_exp SOURCES "${EXAMPLES}/log_sum_exp/log_sum_exp.cpp")
include(CTest)
catena_add_plugin_test(log_sum_exp SOURCES empty.cpp)
catena_add_plugin_test(log_sum_exp SOURCES empty.cpp NAME second)
END
echo 'int main() {}' >cookbook/empty.cpp
quietly cmake -G Ninja -S cookbook -B cookbook/build -DCMAKE_PREFIX_PATH="$prefix" \
    -DEXAMPLES="$prefix/share/catena/examples/plugin"
quietly cmake --build cookbook/build
[[ $(ctest --test-dir cookbook/build -N | sed -n 's/^ *Test *#.*: //p' | sort | xargs) == \
    'log_sum_exp-check log_sum_exp-test second' ]] || fail "two test programs of one plugin"
CATENA_PLUGIN_PATH=$PWD/soft_gate/build/$modules trainer/build/trainer --steps 20 \
    --plugin soft_gate/build/$modules/soft_gate.catena \
    --plugin bump/build/$modules/bump.catena \
    --plugin cookbook/build/$modules/log_sum_exp.catena | tee out
for name in catena.tanh org.example.soft_gate com.example.bump; do
    grep -q "^trained with $name: " out || fail "$name: named, and not trained with"
done
grep -q '^not trained with org.example.log_sum_exp: it makes (1,) of (1, 32)$' out ||
    fail "log_sum_exp does not fit, and that is not said"

# Programs with the parts models, images and program; the last needs Boost, not in the package.
mkdir parts
parts="models images"
if echo '#include <boost/program_options.hpp>' | c++ -E -x c++ - >/dev/null 2>&1; then
    parts+=" program"
fi
cat >parts/CMakeLists.txt <<END
cmake_minimum_required(VERSION 3.25)
project(parts LANGUAGES CXX)
find_package(catena REQUIRED COMPONENTS $parts)
foreach(part IN ITEMS ${parts// /;})
    add_executable(\${part} \${part}.cpp)
    target_link_libraries(\${part} PRIVATE catena::\${part})
endforeach()
END
cat >parts/models.cpp <<'END'
#include <catena/catena.hpp>
#include <catena/models.hpp>
#include <cstdio>

using namespace catena;

int main() {
    models::Cnn net({1, 28, 28}, 10, 16);
    std::puts(to_string(net(as_variable(Array::zeros({3, 784}))).shape()).c_str());
}
END
cat >parts/images.cpp <<'END'
#include <catena/images.hpp>
#include <cstdio>

int main() {
    catena::write_png("a.png", {1, 1, {1, 2, 3}});
    std::printf("%d\n", catena::read_image("a.png").pixels[2]);
}
END
cat >parts/program.cpp <<'END'
#include <catena/program.hpp>

int main(int argc, char** argv) {
    return catena::run_program("parts", [&] {
        catena::Program program("parts", "Says where it is.");
        if (!program.parse(argc, argv)) return 0;
        program.print(std::string(program.start().name()));
        return program.finish();
    });
}
END
quietly cmake -G Ninja -S parts -B parts/build -DCMAKE_PREFIX_PATH="$prefix"
quietly cmake --build parts/build
[[ $(parts/build/models) == "(3, 10)" ]] || fail "models: not as it should be"
[[ $(parts/build/images) == 3 ]] || fail "images: not as it should be"
if [[ $parts == *program* ]]; then
    [[ $(parts/build/program --device cpu:1 --log-file parts/log) == cpu:1 ]] || fail "program: no device"
    grep -q 'Z  cpu:1$' parts/log || fail "program: no log"
fi

# Tests the error for a component that the package does not have.
mkdir asks
cat >asks/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.25)
project(asks LANGUAGES CXX)
find_package(catena REQUIRED COMPONENTS plugin telepathy)
END
! cmake -G Ninja -S asks -B asks/build -DCMAKE_PREFIX_PATH="$prefix" >log 2>&1 ||
    fail "there is no component telepathy"
tr -s ' \n' ' ' <log | grep -q 'COMPONENTS: expected of abi, plugin, testing, core, loader, host, models, images, distributed, program, got telepathy' ||
    { cat log && fail "a missing component: not named"; }
