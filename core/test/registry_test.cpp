// Tests of registration: a plugin is registered completely or not at all; errors state the reason.
#include "toys.hpp"

#include "graph/call.hpp"

#include <catena/core/error.hpp>
#include <catena/core/plugin_function.hpp>
#include <catena/diagnostics/kernels.hpp>
#include <catena/loader/plugins.hpp>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace catena;

namespace {

catena_status run(catena_ctx*, const catena_call*) { return CATENA_OK; }

const char* const choices[] = {"full", "half", nullptr};

// A valid plugin; each test makes one part of it invalid.
struct Candidate_plugin {
    explicit Candidate_plugin(const char* id = "toys.candidate") : plugin(id) {
        f = &plugin.function("toy.candidate", {{"x"}, {"z"}}, {{"y"}}, toys::infer_same);
        a = &plugin.attribute(*f, "alpha", CATENA_ATTR_FLOAT);
        k = &plugin.kernel("toy.candidate", run);
    }
    std::string refusal() {
        try {
            const PluginEntry& entry = plugin.add();
            Registry::get().remove(entry);
        } catch (const PluginError& error) {
            CHECK_FALSE(there());
            return error.what();
        }
        return "accepted";
    }
    static bool there() {
        const auto names = function_names();
        return std::binary_search(names.begin(), names.end(), "toy.candidate");
    }

    toys::Plugin plugin;
    catena_function* f;
    catena_attr_spec* a;
    catena_kernel* k;
};

template <class Break>
std::string refused(const Break& spoil) {
    Candidate_plugin p;
    spoil(p);
    return p.refusal();
}

}  // namespace

TEST_CASE("a valid plugin is registered and can be removed") {
    Candidate_plugin p;
    const PluginEntry& entry = p.plugin.add();
    CHECK(Candidate_plugin::there());
    CHECK(function_descriptor("toy.candidate").n_inputs == 2);
    CHECK(kernels_of("toy.candidate").size() == 1);
    const PluginFunction handle("toy.candidate", {{"alpha", 2.0}});
    Registry::get().remove(entry);
    const Array x = Array::zeros({2});
    CHECK(handle.forward(std::vector{x, x}).size() == 1);  // the code stays loaded
    CHECK_FALSE(Candidate_plugin::there());
    CHECK_THROWS_AS(PluginFunction("toy.candidate"), PluginError);
    CHECK(Candidate_plugin().refusal() == "accepted");
}

TEST_CASE("functions that are refused") {
    CHECK(refused([](auto& p) { p.f->name = nullptr; }) == "a function has no name");
    CHECK(refused([](auto& p) { p.f->name = ""; }) == "a function has no name");
    for (const char* name : {"toy.a b", "toy", "toy.", ".toy", "toy..a", "toy.A", "toy.1", "toy._a",
                             "toy.a/1", "toy.\xc3\xa4"}) {
        CHECK(refused([=](auto& p) { p.f->name = name; }) ==
              fmt::format("a function '{}': expected two or more words with dots between them, "
                          "each a lower-case letter and then lower-case letters, digits, _ and -, "
                          "as in org.example.thing",
                          name));
    }
    for (const char* name : {"a.b", "toy.a-b_2.c"})
        CHECK(refused([=](auto& p) { p.f->name = name; }) == "accepted");
    CHECK(refused([](auto& p) {
              static const std::string name(201, 'a');
              p.f->name = name.c_str();
          }) == "a function has a name of over 200 bytes");
    CHECK(refused([](auto& p) { p.f->infer = nullptr; }) ==
          "function toy.candidate has neither infer() nor compose()");
    CHECK(refused([](auto& p) { p.f->version = 0; }) ==
          "function toy.candidate: version: expected at least 1, got 0");
    CHECK(refused([](auto& p) { p.f->struct_size = 20; }) ==
          "function 0: struct_size: expected at least 120, got 20");
    CHECK(refused([](auto& p) { p.f->n_inputs = 33; }) ==
          "function toy.candidate: more than 32 ports");
    CHECK(refused([](auto& p) { p.f->outputs = nullptr; }) ==
          "function toy.candidate: ports are NULL");
    CHECK(refused([](auto& p) {
              p.f->gradient = [](catena_ctx*, const catena_gradient_call*) -> catena_status {
                  return 0;
              };
              p.f->grad_function = "toy.cube_grad";
          }) == "function toy.candidate has both gradient() and grad_function");
    const auto port = [](auto& p, int i) { return const_cast<catena_port_spec*>(p.f->inputs[i]); };
    CHECK(refused([&](auto& p) { port(p, 0)->name = nullptr; }) ==
          "port 0 of toy.candidate has no name");
    CHECK(refused([&](auto& p) { port(p, 0)->type_var = nullptr; }) ==
          "function toy.candidate: port x has no type_var");
    CHECK(refused([&](auto& p) { port(p, 0)->flags = CATENA_PORT_VARIADIC; }) ==
          "function toy.candidate: only the last input can be variadic, not x");
    CHECK(refused([&](auto& p) { port(p, 0)->struct_size = 0; }) ==
          "input 0: struct_size: expected at least 32, got 0");
    CHECK(refused([](auto& p) {
              p.plugin.function("toy.add", {{"x"}}, {{"y"}}, toys::infer_same);
          }) == "function toy.add is already registered by /toys/toys.functions");
    CHECK(refused([](auto& p) {
              p.plugin.function("toy.candidate", {{"x"}}, {{"y"}}, toys::infer_same);
          }) == "function toy.candidate is declared twice");
    CHECK(refused([](auto& p) { p.f->flags = CATENA_FUNCTION_ADDITION; }) ==
          "function toy.candidate claims to be the addition, which is toy.add");
    CHECK(refused([](auto& p) {
              p.f->flags = CATENA_FUNCTION_ADDITION;
              p.f->n_inputs = 1;
          }) ==
          "function toy.candidate: flags: it claims to be the addition: expected 2 inputs and 1 "
          "output, got 1 and 1");
    CHECK(refused([](auto& p) {
              p.plugin.function("toy.types", {{"a", 0, "A"}, {"b", 0, "B"}, {"c", 0, "C"}},
                                {{"d", 0, "D"}, {"e", 0, "E"}}, toys::infer_same);
          }) == "function toy.types: more than 4 type variables");
}

TEST_CASE("views, retained ports and grad_functions that are refused") {
    const auto view = [](auto spoil) {
        return refused([&](auto& p) {
            auto& f = p.plugin.function("toy.seen", {{"x"}}, {{"y"}}, toys::infer_same);
            f.flags = CATENA_FUNCTION_VIEW;
            spoil(p, f);
        });
    };
    const auto input = [](auto& f) { return const_cast<catena_port_spec*>(f.inputs[0]); };
    CHECK(view([](auto&, auto&) {}) == "accepted");
    const std::string shape =
        "function toy.seen: a view needs one output and a first input that is neither optional nor "
        "mutated";
    CHECK(view([](auto&, auto& f) { f.n_outputs = 0; }) == shape);
    CHECK(view([](auto&, auto& f) { f.n_inputs = 0; }) == shape);
    CHECK(view([&](auto&, auto& f) { input(f)->flags = CATENA_PORT_OPTIONAL; }) == shape);
    CHECK(view([&](auto&, auto& f) { input(f)->type_var = "U"; }) ==
          "function toy.seen: a view needs the same type_var for input and output, got U and T");
    CHECK(view([](auto& p, auto&) { p.plugin.kernel("toy.seen", run); }) ==
          "kernel of toy.seen: a view has no kernels");

    CHECK(refused([](auto& p) { p.f->retain_x = 3; }) == "accepted");
    CHECK(refused([](auto& p) { p.f->retain_x = 5; }) ==
          "function toy.candidate: retain_x 0x5: it has 2 inputs");
    CHECK(refused([](auto& p) { p.f->retain_y = 2; }) ==
          "function toy.candidate: retain_y 0x2: it has 1 outputs");
    CHECK(refused([](auto& p) { p.f->retain_x = CATENA_RETAIN_REST; }) ==
          "function toy.candidate: retain_x 0x8000000000000000: it has 2 inputs");
    CHECK(refused([](auto& p) {
              p.f->retain_x = CATENA_RETAIN_REST | 1;
              const_cast<catena_port_spec*>(p.f->inputs[1])->flags = CATENA_PORT_VARIADIC;
          }) == "accepted");
    CHECK(refused([](auto& p) {
              p.k->variant = "v";
              p.k->retain_y = 2;
          }) == "kernel of toy.candidate retains ports that are not there: x 0x0, y 0x2");

    // (x, z) -> y retains x: its gradient is (x, gy) -> (gx, gz).
    const auto by_name = [](std::initializer_list<toys::Port> inputs,
                            std::initializer_list<toys::Port> outputs, const char* attribute) {
        return refused([&](auto& p) {
            p.f->retain_x = 1;
            p.f->grad_function = "toy.candidate_grad";
            auto& g = p.plugin.function("toy.candidate_grad", inputs, outputs, toys::infer_same);
            p.plugin.attribute(g, attribute, CATENA_ATTR_FLOAT);
        });
    };
    CHECK(by_name({{"x"}, {"gy"}}, {{"gx"}, {"gz"}}, "alpha") == "accepted");
    CHECK(by_name({{"x"}, {"gy"}}, {{"gx"}}, "alpha") ==
          "function toy.candidate: its grad_function toy.candidate_grad: expected 2 inputs and 2 "
          "outputs, got 2 and 1");
    CHECK(by_name({{"gy"}}, {{"gx"}, {"gz"}}, "alpha") ==
          "function toy.candidate: its grad_function toy.candidate_grad: expected 2 inputs and 2 "
          "outputs, got 1 and 2");
    CHECK(by_name({{"x"}, {"gy"}}, {{"gx"}, {"gz"}}, "beta") ==
          "function toy.candidate: its grad_function toy.candidate_grad has other attributes");
    CHECK(refused([](auto& p) { p.f->grad_function = "toy.cube_grad"; }) ==
          "function toy.candidate: its grad_function toy.cube_grad has other attributes");
    CHECK(refused([](auto& p) {
              p.f->grad_function = "not a name";
          }).find("the grad_function of ") == 0);
    CHECK(refused([](auto& p) { p.f->grad_function = "toy.comes_later"; }) == "accepted");
}

TEST_CASE("a grad_function that is loaded later is looked up and checked once, on first use") {
    toys::Plugin early("toys.grad-early"), late("toys.grad-late");
    auto& f = early.function("toy.early", {{"x"}}, {{"y"}}, toys::infer_same);
    f.grad_function = "toy.late_grad";
    const auto copies = [](catena_ctx*, const catena_call* c) -> catena_status {
        toys::put(*c->y[0], 0, toys::get(*c->x[0], 0));
        return CATENA_OK;
    };
    early.kernel("toy.early", copies);
    early.add();
    const Variable x(toys::floats({5}));
    const Variable y = PluginFunction("toy.early").first({&x});
    CHECK_THROWS_WITH_AS(
        y.backward(), doctest::Contains("no plugin has the function toy.late_grad"), PluginError);
    auto& wrong = late.function("toy.late_grad", {{"gy"}, {"more"}}, {{"gx"}}, toys::infer_same);
    late.kernel("toy.late_grad", copies);
    const PluginEntry& entry = late.add();
    CHECK_THROWS_WITH_AS(y.backward(),
                         "function toy.early: its grad_function toy.late_grad: expected 1 inputs "
                         "and 1 outputs, got 2 and 1",
                         PluginError);
    Registry::get().remove(entry);
    wrong.n_inputs = 1;
    const PluginEntry& right = late.add();
    y.backward();
    CHECK(toys::values(x.grad()) == toys::Values{1});
    Registry::get().remove(right);
    CHECK_THROWS_AS(y.backward(), PluginError);  // the removed function is not used
}

TEST_CASE("examples that are refused, and structs without the field `examples`") {
    const auto with = [](std::initializer_list<const char*> texts) {
        static std::vector<const char*> list;
        list = texts;
        list.push_back(nullptr);
        return refused([](auto& p) { p.f->examples = list.data(); });
    };
    CHECK(with({}) == "accepted");
    CHECK(with({"x=(2,3)[0.5,2] z=(2,3) alpha=1", "z=() x=()"}) == "accepted");
    CHECK(with({"x=(2) z"}) ==
          "function toy.candidate: example 'x=(2) z': expected NAME=VALUE, got 'z'");
    CHECK(with({"x=(2) z="}) ==
          "function toy.candidate: example 'x=(2) z=': expected NAME=VALUE, got 'z='");
    CHECK(with({"x=(2)  z=(2)", " x=(2) z=(2) "}) == "accepted");
    CHECK(with({R"(alpha="a b" x=(2) z=(2))", R"(alpha="\" w=\\" x=(2)  z=(2))"}) == "accepted");
    CHECK(
        with({R"(alpha="a" b x=(2) z=(2))"}) ==
        R"(function toy.candidate: example 'alpha="a" b x=(2) z=(2)': expected NAME=VALUE, got 'b')");
    CHECK(with({"x=(2)"}) == "function toy.candidate: example 'x=(2)': z is missing");
    CHECK(with({"x=() z=() w=()"}) ==
          "function toy.candidate: example 'x=() z=() w=()': it has no w");
    CHECK(with({"x=() z=()\n"}) ==
          "function toy.candidate: an example contains control characters");
    static const std::string endless(1001, 'x');
    CHECK(with({endless.c_str()}) == "function toy.candidate: an example of over 1000 bytes");
    static const std::vector<const char*> many(65, "x=() z=()");
    CHECK(refused([](auto& p) { p.f->examples = many.data(); }) ==
          "function toy.candidate: over 64 examples; is the list NULL-terminated?");
}

TEST_CASE("attributes that are refused") {
    CHECK(refused([](auto& p) { p.a->name = "al pha"; }) ==
          "attribute 0 of toy.candidate 'al pha': names are letters, digits and . _ - : /");
    CHECK(refused([](auto& p) { p.a->kind = 8; }) ==
          "function toy.candidate: attribute alpha: unknown kind 8");
    CHECK(refused([](auto& p) { p.a->def.kind = CATENA_ATTR_INT; }) ==
          "function toy.candidate: attribute alpha: default of kind 1, expected 2");
    CHECK(refused([](auto& p) {
              p.a->def.kind = CATENA_ATTR_INT;
              p.a->flags = CATENA_ATTR_REQUIRED;
          }) == "accepted");
    CHECK(refused([](auto& p) { p.plugin.attribute(*p.f, "alpha", CATENA_ATTR_INT); }) ==
          "function toy.candidate: attribute alpha is declared twice");
    CHECK(refused([](auto& p) {
              p.plugin.attribute(*p.f, "text", CATENA_ATTR_STRING).def.v.s = nullptr;
          }) == "function toy.candidate: attribute text: its default is NULL");
    CHECK(refused([](auto& p) { p.plugin.attribute(*p.f, "list", CATENA_ATTR_INTS).def.n = 2; }) ==
          "function toy.candidate: attribute list: its default is NULL");
    const auto range = [](catena_attr_spec& a, catena_value lo, catena_value hi) {
        a.flags |= CATENA_ATTR_RANGED;
        a.lo = lo;
        a.hi = hi;
    };
    CHECK(refused([&](auto& p) { range(*p.a, toys::number(-1), toys::integer(1)); }) == "accepted");
    CHECK(refused([&](auto& p) { range(*p.a, toys::number(1), toys::number(-1)); }) ==
          "function toy.candidate: attribute alpha: a range from 1 to -1");
    CHECK(refused([&](auto& p) { range(*p.a, toys::number(NAN), toys::number(1)); }) ==
          "function toy.candidate: attribute alpha: a range from nan to 1");
    CHECK(refused([&](auto& p) { range(*p.a, toys::number(1), toys::number(2)); }) ==
          "function toy.candidate: attribute alpha: its default 0 is out of its range 1 to 2");
    CHECK(refused([&](auto& p) { range(*p.a, toys::number(1), toys::integers({2})); }) ==
          "function toy.candidate: attribute alpha: a range of kinds 2 and 5, expected numbers");
    CHECK(refused([&](auto& p) {
              range(p.plugin.attribute(*p.f, "text", CATENA_ATTR_STRING), toys::number(1),
                    toys::number(2));
          }) == "function toy.candidate: attribute text: a range, but its kind is 4");
    CHECK(refused([&](auto& p) {
              static const std::int64_t list[] = {1, 9};
              auto& a = p.plugin.attribute(*p.f, "list", CATENA_ATTR_INTS);
              a.def.n = 2;
              a.def.v.ints = list;
              range(a, toys::integer(0), toys::integer(5));
          }) == "function toy.candidate: attribute list: its default 9 is out of its range 0 to 5");
    CHECK(refused([](auto& p) {
              auto& a = p.plugin.attribute(*p.f, "mode", CATENA_ATTR_STRING);
              a.def.v.s = "half";
              a.choices = choices;
          }) == "accepted");
    CHECK(refused([](auto& p) {
              p.plugin.attribute(*p.f, "mode", CATENA_ATTR_STRING).choices = choices;
          }) == "function toy.candidate: attribute mode: its default '' is not among its choices");
    CHECK(refused([](auto& p) { p.a->choices = choices; }) ==
          "function toy.candidate: attribute alpha: choices, but its kind is 2");
    CHECK(refused([](auto& p) { p.f->attrs = nullptr; }) ==
          "function toy.candidate: attributes are NULL");
    CHECK(refused([](auto& p) { p.f->n_attrs = 33; }) ==
          "function toy.candidate: too many attributes");
}

TEST_CASE("kernels that are refused") {
    CHECK(refused([](auto& p) { p.k->run = nullptr; }) == "kernel of toy.candidate has no run()");
    CHECK(refused([](auto& p) { p.k->function = nullptr; }) == "a kernel's function has no name");
    CHECK(refused([](auto& p) { p.k->device = nullptr; }) == "a kernel's device has no name");
    CHECK(refused([](auto& p) { p.k->phase = 2; }) == "kernel of toy.candidate: unknown phase 2");
    CHECK(refused([](auto& p) { p.k->types = nullptr; }) ==
          "kernel of toy.candidate: types are NULL");
    CHECK(refused([](auto& p) { p.k->version_min = 2; }) ==
          "kernel of toy.candidate: versions 2 to 1");
    CHECK(refused([](auto& p) { p.k->n_saved = 1; }) ==
          "kernel of toy.candidate saves tensors but names no variant");
    CHECK(refused([](auto& p) {
              p.k->n_saved = 1;
              p.k->variant = "v";
          }) == "kernel of toy.candidate saves tensors but has no plan()");
    CHECK(refused([](auto& p) { p.k->struct_size = 8; }).find("kernel 0: struct_size: ") == 0);
    CHECK(refused([](auto& p) { p.k->isa = nullptr; }) == "accepted");
}

TEST_CASE("backends and extensions that are refused") {
    CHECK(refused([](auto& p) { p.plugin.backend("toy", 1, 0); }) ==
          "backend toy is already registered by /toys/toys.devices");
    CHECK(refused([](auto& p) {
              p.plugin.backend("abacus", 1, 0);
              p.plugin.backend("abacus", 1, 0);
          }) == "backend abacus is declared twice");
    CHECK(refused([](auto& p) { p.plugin.backend("abacus", 1, 0).copy = nullptr; }) ==
          "backend abacus lacks one of count, open, close, supports_isa, alloc, free, copy, sync");
    CHECK(refused([](auto& p) { p.plugin.backend("abacus", 0, 0); }) ==
          "backend abacus: dlpack_type: expected a DLDeviceType, 1 to 255, got 0");
    CHECK(refused([](auto& p) {
              p.plugin.backend("abacus", 12, CATENA_BACKEND_ASYNC);
          }).find("backend abacus is asynchronous and lacks one of stream_create, ") == 0);
    CHECK(refused([](auto& p) { p.plugin.extension("toy.thing/1", "toy", 0, nullptr); }) ==
          "extension toy.thing/1 has no table");
    CHECK(refused([](auto& p) { p.plugin.extension("", "toy", 0, &p); }) ==
          "an extension has no name");
}

TEST_CASE("backends with too many devices, NULL memory or a short extension table") {
    toys::Plugin many("toys.many-devices"), none("toys.null-memory"), cut("toys.cut-extension");
    many.backend("multitude", 12, CATENA_BACKEND_HOST_MEMORY).count = [](catena_ctx*,
                                                                         std::int32_t* n) {
        *n = 0x7fffffff;
        return catena_status{CATENA_OK};
    };
    none.backend("nowhere", 12, CATENA_BACKEND_HOST_MEMORY).alloc =
        [](catena_ctx*, void*, catena_stream*, std::uint64_t, void** data) {
            *data = nullptr;
            return catena_status{CATENA_OK};
        };
    cut.backend("cut", 12, CATENA_BACKEND_HOST_MEMORY).get_extension =
        [](void*, const char* id) -> const void* {
        static const std::uint32_t size = 8;
        return std::strcmp(id, CATENA_THREADS_1) == 0 ? &size : nullptr;
    };
    const PluginEntry* const entries[] = {&many.add(), &none.add(), &cut.add()};
    const auto devices = Device::list();
    CHECK(devices.size() < 100);
    CHECK(toys::what<DeviceError>([] { Device::get("multitude"); }) ==
          "[device] multitude: expected a device, got none: expected at most 4096 devices, got "
          "2147483647");
    CHECK(toys::what<DeviceError>([] {
              (void)Array::empty({2}, Dtype::float32, Device::get("nowhere"));
          }).find("[nowhere:0] alloc(): expected memory, got NULL") == 0);
    CHECK(toys::what<DeviceError>([] { Device::get("cut"); }) ==
          "[cut:0] catena.threads/1: struct_size: expected at least 32, got 8");
    for (const PluginEntry* entry : entries) Registry::get().remove(*entry);
    const auto opened = Device::opened();  // devices outlive a plugin whose init() failed
    CHECK(std::any_of(opened.begin(), opened.end(),
                      [](const Device& d) { return d.name() == "nowhere:0"; }));
}

TEST_CASE("tables that are refused as a whole") {
    toys::Plugin second("toys.functions");
    CHECK_THROWS_WITH_AS(
        second.add(), "id toys.functions is already loaded from /toys/toys.functions", PluginError);
    catena_plugin table{};
    table.struct_size = sizeof(table);
    const auto refusal = [&] {
        try {
            Registry::get().add("toys.table", "/toys/table", table);
        } catch (const PluginError& error) {
            return std::string(error.what());
        }
        return std::string("accepted");
    };
    table.n_kernels = 1;
    CHECK(refusal() == "its table has a list that is NULL but not empty");
    const catena_kernel* const nothing[1] = {nullptr};
    table.kernels = nothing;
    CHECK(refusal() == "kernel 0 of its table is NULL");
    table.struct_size = 8;
    CHECK(refusal() == "plugin table 0: struct_size: expected at least 72, got 8");
}

TEST_CASE("extensions are sorted by priority; removing a plugin keeps those of others") {
    static const int one = 1, two = 2, three = 3;
    DeviceState& device = *Device::get("toy").state();
    static const char id[] = "toy.thing/1";
    const auto found = [&](const char* name) {
        catena_ctx ctx;
        ctx.device = &device;
        std::vector<int> numbers;
        for (const void* const* t = host_table().extensions(&ctx, name); *t; ++t) {
            numbers.push_back(*static_cast<const int*>(*t));
        }
        return numbers;
    };
    CHECK(found(id).empty());
    toys::Plugin a("toys.extension-a"), b("toys.extension-b"), c("toys.extension-c");
    a.extension(id, "toy", 100, &one);
    b.extension(id, "toy", 200, &two);
    c.extension(id, "toy", 100, &three);
    c.extension(id, "vault", 300, &two);
    a.add();
    CHECK(found(id) == std::vector<int>{1});
    catena_ctx ctx;
    ctx.device = &device;
    const void* const* kept = host_table().extensions(&ctx, id);
    const PluginEntry& entry = b.add();
    CHECK(found(id) == std::vector<int>{2, 1});
    c.add();
    CHECK(found(id) == std::vector<int>{2, 1, 3});
    Registry::get().remove(entry);
    CHECK(found(id) == std::vector<int>{1, 3});
    CHECK(*static_cast<const int*>(kept[0]) == 1);  // a list returned earlier stays readable
    CHECK(kept[1] == nullptr);
    CHECK(found(std::string("toy.thing/1").c_str()) == std::vector<int>{1, 3});
    CHECK(found("toy.thing/2").empty());
    CHECK(*host_table().extensions(nullptr, id) == nullptr);

    toys::Plugin free("toys.extension-free");
    free.extension("toy.free/1", "", 100, &three);
    free.add();
    CHECK(found("toy.free/1").empty());
    CHECK(*static_cast<const int*>(*host_table().extensions(nullptr, "toy.free/1")) == 3);
    CHECK(*host_table().extensions(nullptr, id) == nullptr);
}

TEST_CASE("removing a plugin removes its kernels, not those of others") {
    toys::Plugin functions("toys.stays"), kernels("toys.goes");
    functions.function("toy.stays", {{"x"}}, {{"y"}}, toys::infer_same);
    functions.add();
    kernels.kernel("toy.stays", run);
    const PluginEntry& entry = kernels.add();
    CHECK(kernels_of("toy.stays").size() == 1);
    Registry::get().remove(entry);
    CHECK(kernels_of("toy.stays").empty());
    CHECK(Registry::get().addition() == Registry::get().find("toy.add"));
}

TEST_CASE("an unknown function: the error names it and suggests a similar name") {
    try {
        const PluginFunction f("toy.absent");
        FAIL("expected an error");
    } catch (const PluginError& error) {
        const std::string text = error.what();
        INFO(text);
        CHECK(text.find("no plugin has the function toy.absent\n") == 0);
        CHECK(error.status() == CATENA_E_UNSUPPORTED);
    }
    for (const char* name : {"toy.mull", "Toy.Mul", "mul", "mull", "mlu"}) {
        CHECK_THROWS_WITH_AS(
            PluginFunction{name},
            fmt::format("no plugin has the function {}; did you mean toy.mul?", name).c_str(),
            PluginError);
    }
    CHECK_THROWS_AS((void)function_descriptor("toy.absent"), PluginError);
    CHECK_THROWS_AS((void)kernels_of("toy.absent"), PluginError);
    const auto names = function_names();
    CHECK(std::is_sorted(names.begin(), names.end()));
    CHECK(std::count(names.begin(), names.end(), "toy.mul") == 1);
}

TEST_CASE("the host's table: fields, fail(), errors of find() and call()") {
    const catena_host& host = host_table();
    CHECK(host.struct_size == sizeof(catena_host));
    CHECK(host.abi_major == CATENA_ABI_MAJOR);
    CHECK(std::strcmp(host.name, "catena") == 0);
    catena_ctx ctx;
    CHECK(host.fail(&ctx, CATENA_E_SHAPE, "the first") == CATENA_E_SHAPE);
    CHECK(host.fail(&ctx, CATENA_E_DTYPE, "the second") == CATENA_E_DTYPE);
    CHECK(ctx.error == "the first");
    CHECK(ctx.status == CATENA_E_SHAPE);
    CHECK(host.fail(nullptr, CATENA_OK, nullptr) == CATENA_E_INTERNAL);
    const catena_callable* callable = nullptr;
    catena_ctx fresh;
    CHECK(host.find(&fresh, "toy.mul", &callable) == CATENA_OK);
    catena_var* y = nullptr;
    CHECK(host.call(&fresh, callable, nullptr, 0, nullptr, 0, &y, 1) == CATENA_E_INVALID);
    CHECK(fresh.error == "call(): only within gradient() and compose()");
    catena_ctx absent;
    CHECK(host.find(&absent, "toy.absent", &callable) == CATENA_E_UNSUPPORTED);
    CHECK(absent.error.find("no plugin has the function toy.absent") == 0);
    CHECK(host.get_extension(&host, "org.example.none/1") == nullptr);
    host.log(nullptr, CATENA_LOG_DEBUG, "not shown");
}
