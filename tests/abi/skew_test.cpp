// Tests plugins of an invented next minor (samples/next.c) on current hosts: one that needs the
// current minor runs, one that needs the next is refused, one that reads past a struct is caught.
#include <catena/core/error.hpp>
#include <catena/core/grad.hpp>
#include <catena/core/plugin_function.hpp>
#include <catena/loader/plugins.hpp>
#include <catena/testing.hpp>

#include <doctest/doctest.h>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <functional>

#include "entry.hpp"

namespace {

std::string minor(unsigned n) { return std::to_string(CATENA_ABI_MAJOR) + "." + std::to_string(n); }

// Copies a struct to the end of readable memory: reading past its end raises SIGSEGV.
template <class T>
T* at_page_end(const T& value) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    void* memory =
        mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || mprotect(static_cast<char*>(memory) + page, page, PROT_NONE) != 0)
        _exit(2);
    void* place = static_cast<char*>(memory) + page - sizeof(T);
    return static_cast<T*>(std::memcpy(place, &value, sizeof(T)));
}

// Runs body in a child process. Returns the signal that ended it, or 0 if body succeeded.
int signal_of(const std::function<bool()>& body) {
    const pid_t child = fork();
    if (child == 0) {
        std::signal(SIGSEGV, SIG_DFL);
        _exit(body() ? 0 : 1);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    if (WIFSIGNALED(status)) return WTERMSIG(status);
    CHECK(WEXITSTATUS(status) == 0);
    return 0;
}

const catena_plugin* enter(const char* path, const catena_host* host) {
    const auto entry = entry_of(path);
    return entry == nullptr ? nullptr : entry(host, nullptr);
}

// A host table with readable memory behind it, so that reading past its end does not fail.
struct Roomy {
    catena_host host = catena::testing::World::host();
    char room[64] = {};
};

// Arguments that a host passes to a plugin. Each struct ends where readable memory ends.
struct Lent {
    double in = 3, out = 0;
    std::int64_t shape = 1, stride = 1;
    const catena_tensor* x = tensor(&in);
    catena_tensor* y = tensor(&out);
    catena_meta* meta = of(catena_meta{});
    catena_plan* plan = of(catena_plan{});
    catena_call* call = of(make_call());

    template <class T>
    static T* of(T value) {
        value.struct_size = sizeof value;
        return at_page_end(value);
    }
    catena_tensor* tensor(double* data) {
        catena_tensor t = {};
        t.dl = {data, 1, 0, 1, {CATENA_CODE_FLOAT, 64, 1}, &shape, &stride, 0};
        t.nbytes = sizeof(double);
        return of(t);
    }
    catena_call make_call() const {
        catena_call c = {};
        c.x = &x;
        c.y = &y;
        return c;
    }
};

bool enters(const char* path) {
    return enter(path, at_page_end(catena::testing::World::host())) != nullptr;
}
bool infers(const char* path) {
    const Roomy table;
    const Lent lent;
    return enter(path, &table.host)
               ->functions[0]
               ->infer(nullptr, nullptr, &lent.meta, 1, &lent.meta, 1) == CATENA_OK;
}
bool runs(const char* path) {
    const Roomy table;
    const Lent lent;
    const catena_kernel& kernel = *enter(path, &table.host)->kernels[0];
    return kernel.plan(nullptr, lent.call, lent.plan) == CATENA_OK &&
           kernel.run(nullptr, lent.call) == CATENA_OK && lent.out == lent.in;
}

}  // namespace

// Must be the first test case: it forks, and later ones may start threads.
TEST_CASE("a plugin that does not look before it reads is caught where a host's struct ends") {
    CHECK(signal_of([] { return enters(NEXT_PLUGIN); }) == 0);
    CHECK(signal_of([] { return infers(NEXT_PLUGIN); }) == 0);
    CHECK(signal_of([] { return runs(NEXT_PLUGIN); }) == 0);
    CHECK(signal_of([] { return enters(UNGUARDED_PLUGIN); }) == SIGSEGV);
    CHECK(signal_of([] { return infers(UNGUARDED_PLUGIN); }) == SIGSEGV);
    CHECK(signal_of([] { return runs(UNGUARDED_PLUGIN); }) == SIGSEGV);
}

TEST_CASE("the core runs a plugin of the next minor that needs only this one") {
    using namespace catena;
    load_plugin(NEXT_PLUGIN);
    CHECK(read_manifest(NEXT_PLUGIN).id == "org.example.next");
    const Variable x(Array::from({1.0, -2.0, 5.0}, {3}));
    const Variable y = PluginFunction("org.example.next", {{"unused", 3}})({&x})[0];
    CHECK(y.data().to_vector<double>() == x.data().to_vector<double>());
    const Variable gy(Array::from({0.5, 1.5, 2.5}, {3}));
    CHECK(grad({y}, {x}, {gy})[0].data().to_vector<double>() == gy.data().to_vector<double>());
}

TEST_CASE("the core refuses one that needs the next minor, and says both") {
    const std::string wanted =
        "it needs " + minor(CATENA_ABI_MINOR + 1) + ", this host has " + minor(CATENA_ABI_MINOR);
    CHECK_THROWS_WITH_AS(catena::load_plugin(NEEDED_PLUGIN), doctest::Contains(wanted.c_str()),
                         catena::PluginError);
    CHECK_THROWS_AS(catena::read_manifest(NEEDED_PLUGIN), catena::PluginError);
}

TEST_CASE("catena::testing does the same") {
    using namespace catena::testing;
    World world({NEXT_PLUGIN});
    const Array x = Array::from<double>({1, -2, 5}, {3});
    const Array y = world.forward("org.example.next", {x})[0];
    CHECK(y == x);
    CHECK(world.backward("org.example.next", {x}, {y}, {x})[0] == x);
    CHECK(conform(world, "org.example.next").failures() == "");
    CHECK_THROWS_WITH(World({NEEDED_PLUGIN}),
                      doctest::Contains(minor(CATENA_ABI_MINOR + 1).c_str()));
}
