// Checks that the table of functions, kernels and devices is complete and consistent.
#include "rig.hpp"

#include <catena/testing/example.hpp>
#include <testing/functions.hpp>
#include <testing/types.hpp>

#include <fmt/ranges.h>

#include <elf_file.hpp>
#include <table_rules.hpp>

#include <regex>
#include <span>
#include <sstream>

namespace catena::check::schema {
namespace {

using testing::World;
using testing::detail::Module;

// The plugin's table. find() also finds functions of catena's own plugins and of --with.
class Table {
public:
    explicit Table(const Subject& subject)
        : world_(make_world(subject)),
          module_(subject.file),
          table_(module_.table(World::host(), *world_, false)) {}

    template <class Body>
    void functions(const Body& body) const {
        for (const auto* f : std::span(table_.functions, table_.n_functions)) body(*f);
    }
    template <class Body>
    void kernels(const Body& body) const {
        for (const auto* k : std::span(table_.kernels, table_.n_kernels)) body(*k);
    }
    // Includes the kernels of --with.
    const std::vector<const catena_kernel*>& all_kernels() const { return world_->kernels(); }
    const catena_plugin& raw() const { return table_; }
    auto backends() const { return std::span(table_.backends, table_.n_backends); }
    auto extensions() const { return std::span(table_.extensions, table_.n_extensions); }
    const catena_manifest& manifest() const { return *module_.manifest; }
    const catena_function* find(const std::string& name) const {
        for (const auto* f : std::span(table_.functions, table_.n_functions))
            if (name == f->name) return f;
        try {
            return &world_->function(name);
        } catch (const testing::Failure&) {
            return nullptr;
        }
    }

private:
    std::unique_ptr<World> world_;
    Module module_;
    const catena_plugin& table_;
};

template <void (*look)(const Table&, Findings&)>
void at_table(const Subject& subject, Findings& findings) {
    look(Table(subject), findings);
}

Broken each_to(Findings& findings) {
    return Broken([&](const std::string& text) { findings.fail("{}", text); });
}

std::string label(const catena_kernel& k) {
    return fmt::format("{} kernel of {} on {}{}{}",
                       k.phase == CATENA_PHASE_FORWARD ? "forward" : "backward", k.function,
                       k.device, *k.isa != 0 ? " " : "", k.isa);
}

void table(const Subject& subject, Findings& findings) {
    World world{std::vector<std::string>()};
    try {
        const Module module(subject.file);
        const std::string text =
            damage(*module.manifest, module.table(World::host(), world, false));
        if (!text.empty()) findings.fail("{}", text);
    } catch (const testing::Failure&) {
        findings.skip("see load/entry");
    }
}
const Registered r1{{"schema", "table",
                     "required entries are present and not NULL; sizes, counts and kinds are valid",
                     table, Each::plugin, false}};

// Whether the name is a valid identifier for wrappers in any language.
bool identifier(const std::string& name) {
    static const std::regex form("[A-Za-z_][A-Za-z0-9_]{0,63}");
    return std::regex_match(name, form);
}

void names(const Table& table, Findings& findings) {
    const std::string id = field_text(table.manifest().id);
    std::set<std::string> seen;
    table.functions([&](const catena_function& f) {
        const std::string name = f.name;
        check_id(f.name, "a function", each_to(findings));
        if (!seen.insert(name).second) findings.fail("{}: it is declared twice", name);
        if (name.rfind("catena.", 0) == 0 && id.rfind("org.catena.", 0) != 0)
            findings.fail("{}: catena.* are catena's own: expected a name as in org.example.thing",
                          name);
        std::set<std::string> arguments;  // examples use one namespace for both
        std::set<std::string> outputs;
        const auto meet = [&](std::set<std::string>& known, const char* what, const char* text) {
            if (!identifier(text))
                findings.fail("{}: {} '{}': expected letters, digits and _", name, what, text);
            if (!known.insert(text).second)
                findings.fail("{}: {} {}: it is declared twice", name, what, text);
        };
        for (const auto* x : std::span(f.inputs, f.n_inputs)) meet(arguments, "input", x->name);
        for (const auto* a : std::span(f.attrs, f.n_attrs)) meet(arguments, "attribute", a->name);
        for (const auto* y : std::span(f.outputs, f.n_outputs)) meet(outputs, "output", y->name);
    });
    const Broken broken = each_to(findings);
    table.kernels(
        [&](const catena_kernel& k) { check_name(k.device, "a kernel's device", broken); });
    for (const auto* b : table.backends()) check_name(b->name, "a backend", broken);
    for (const auto* e : table.extensions()) {
        check_name(e->id, "an extension", broken);
        if (*e->device != 0) check_name(e->device, "an extension's device", broken);
    }
}
const Registered r2{{"schema", "names",
                     "function names are in reverse DNS; port and attribute names are unique "
                     "identifiers; device and extension names have no blanks",
                     at_table<names>}};

void docs(const Table& table, Findings& findings) {
    table.functions([&](const catena_function& f) {
        if (*f.doc == 0) findings.fail("{}: expected a text, got none", f.name);
        for (const auto* a : std::span(f.attrs, f.n_attrs))
            if (*a->doc == 0)
                findings.fail("{}: attribute {}: expected a text, got none", f.name, a->name);
    });
}
const Registered r3{
    {"schema", "docs", "functions and attributes have a description", at_table<docs>}};

void attributes(const Table& table, Findings& findings) {
    table.functions([&](const catena_function& f) {
        check_attributes(f, each_to(findings));
        constexpr std::uint32_t known =
            CATENA_ATTR_REQUIRED | CATENA_ATTR_RANGED | CATENA_ATTR_HINT;
        for (const auto* a : std::span(f.attrs, f.n_attrs))
            if ((a->flags & ~known) != 0 || a->reserved != 0)
                findings.fail("{}: attribute {}: flags: expected those of the ABI, got {:#x}",
                              f.name, a->name, a->flags);
    });
}
const Registered r4{{"schema", "attributes",
                     "kinds, ranges and choices are valid and include the defaults",
                     at_table<attributes>}};

void ports(const Table& table, Findings& findings) {
    table.functions([&](const catena_function& f) {
        const auto fail = [&](const std::string& text) { findings.fail("{}: {}", f.name, text); };
        for (const bool in : {true, false})
            for (std::uint32_t i = 0; i < (in ? f.n_inputs : f.n_outputs); ++i) {
                const catena_port_spec& p = in ? *f.inputs[i] : *f.outputs[i];
                const std::uint32_t legal =
                    CATENA_PORT_NON_DIFFERENTIABLE |
                    (in ? CATENA_PORT_OPTIONAL | CATENA_PORT_MUTATED | CATENA_PORT_HOST
                        : CATENA_PORT_HIDDEN) |
                    (in && i + 1 == f.n_inputs ? +CATENA_PORT_VARIADIC : 0u);
                if ((p.flags & ~legal) != 0)
                    fail(fmt::format("{}: flags: expected those of {}, got {:#x}", p.name,
                                     in ? "an input" : "an output", p.flags));
                if (*p.type_var == 0)
                    fail(fmt::format("{}: expected a type_var, got none", p.name));
            }
        check_ports(f, each_to(findings));
        if ((f.flags & CATENA_FUNCTION_ADDITION) != 0 && std::strcmp(f.name, "catena.add") != 0)
            fail("the addition: expected catena.add alone, since a host takes one");
        if ((f.flags >> 8) != 0)
            fail(fmt::format("flags: expected those that there are, got {:#x}", f.flags));
    });
    table.kernels([&](const catena_kernel& k) {
        const catena_function* f = table.find(k.function);
        if (f != nullptr) check_kernel_of(*f, k, each_to(findings));
    });
}
const Registered r5{
    {"schema", "ports",
     "flags and type variables are valid; retained sets contain only existing ports",
     at_table<ports>}};

void versions(const Table& table, Findings& findings) {
    table.functions([&](const catena_function& f) { check_version(f, each_to(findings)); });
    table.kernels([&](const catena_kernel& k) {
        const catena_function* f = table.find(k.function);
        check_versions(k, each_to(findings));
        if (f != nullptr && (f->version < k.version_min || f->version > k.version_max))
            findings.fail("{}: expected version {} among those that it computes, got {} to {}",
                          label(k), f->version, k.version_min, k.version_max);
    });
}
const Registered r6{{"schema", "versions",
                     "versions are 1 or higher; kernels compute their function's version",
                     at_table<versions>}};

void gradient(const Table& table, Findings& findings) {
    table.functions([&](const catena_function& f) {
        check_gradient(f, each_to(findings));
        if ((f.flags & CATENA_FUNCTION_NOT_DIFFERENTIABLE) != 0 &&
            (f.gradient != nullptr || f.grad_function != nullptr))
            findings.fail("{}: NOT_DIFFERENTIABLE: expected no gradient, got one", f.name);
        if (f.grad_function == nullptr) return;
        if (const catena_function* const g = table.find(f.grad_function))
            check_grad_function(f, *g, each_to(findings));
        else
            findings.fail("{}: grad_function {}: expected a function that there is, got none",
                          f.name, f.grad_function);
    });
}
const Registered r7{
    {"schema", "gradient",
     "a function has at most one gradient; a grad_function exists and has the required ports",
     at_table<gradient>}};

void kernels(const Table& table, Findings& findings) {
    table.kernels([&](const catena_kernel& k) {
        const auto fail = [&](const std::string& text) { findings.fail("{}: {}", label(k), text); };
        const catena_function* const f = table.find(k.function);
        if (f == nullptr)
            return fail(
                "expected a function of the plugin, of catena's own or of --with, got one that "
                "nobody has");
        constexpr std::uint32_t known =
            CATENA_KERNEL_ADDS | CATENA_KERNEL_STRIDED | CATENA_KERNEL_DETERMINISTIC;
        if ((k.flags & ~known) != 0)
            fail(fmt::format("flags: expected those that there are, got {:#x}", k.flags));
        const std::size_t n = type_vars(*f).size();
        if (k.n_types == 0 && n > 0) fail("expected rows of dtypes, got none");
        std::set<std::string> rows;
        for (std::uint32_t r = 0; r < k.n_types; ++r) {
            std::string row;
            for (std::size_t i = 0; i < n; ++i) {
                const catena_dtype d = k.types[r * n + i];
                if (plugin::index_in(testing::detail::EveryType(), d) < 0)
                    fail(fmt::format(
                        "row {}: expected a dtype that there is, got code {}, {} bits, {} lanes", r,
                        d.code, d.bits, d.lanes));
                row += fmt::format("{}:{} ", d.code, d.bits);
            }
            if (!rows.insert(row).second) fail(fmt::format("row {}: it is declared twice", r));
        }
    });
    table.functions([&](const catena_function& f) {
        if ((f.flags & CATENA_FUNCTION_VIEW) != 0 || f.compose != nullptr) return;
        bool computed = false;
        for (const catena_kernel* k : table.all_kernels())
            computed = computed ||
                       (k->phase == CATENA_PHASE_FORWARD && std::strcmp(k->function, f.name) == 0);
        if (!computed)
            findings.fail(
                "{}: expected a forward kernel or compose(), got none: nobody can call it", f.name);
    });
}
const Registered r8{
    {"schema", "kernels",
     "each kernel has a function, and each function a kernel or compose(); rows of dtypes are "
     "valid",
     at_table<kernels>}};

void variants(const Table& table, Findings& findings) {
    check_variants(table.raw(), each_to(findings));
    table.kernels([&](const catena_kernel& k) {
        if (k.variant == nullptr) return;
        bool paired = false;
        table.kernels([&](const catena_kernel& other) {
            paired = paired || (other.phase != k.phase && other.variant != nullptr &&
                                std::strcmp(other.variant, k.variant) == 0 &&
                                std::strcmp(other.function, k.function) == 0 &&
                                std::strcmp(other.device, k.device) == 0);
        });
        if (!paired)
            findings.fail("{}: variant '{}': expected a {} kernel of it, got none", label(k),
                          k.variant, k.phase == CATENA_PHASE_FORWARD ? "backward" : "forward");
    });
}
const Registered r9{{"schema", "variants",
                     "a variant has both forward and backward kernels, with the same saved tensors",
                     at_table<variants>}};

void examples(const Table& table, Findings& findings) {
    table.functions([&](const catena_function& f) {
        if (f.examples == nullptr) return;
        check_examples(f, each_to(findings));
        for (std::size_t i = 0; f.examples[i] != nullptr && i < 64; ++i) try {
                (void)testing::parse_example(f, f.examples[i]);
            } catch (const std::exception& e) {
                findings.fail("{}", e.what());
            }
    });
}
const Registered r10{
    {"schema", "examples",
     "examples name existing inputs and attributes, and give all that are required",
     at_table<examples>}};

void devices(const Table& table, Findings& findings) {
    std::set<std::string> has, own, says;
    table.kernels([&](const catena_kernel& k) { has.insert(k.device); });
    // The manifest may, but need not, list devices of the plugin's own backends.
    for (const auto* b : table.backends()) own.insert(b->name);
    for (const auto* e : table.extensions())
        if (*e->device != 0) has.insert(e->device);  // empty: for no device
    const std::string text = field_text(table.manifest().devices);
    std::istringstream names(text);
    for (std::string name; std::getline(names, name, ',');) says.insert(name);
    table.functions([&](const catena_function& f) {  // a composition needs no device
        if (f.compose != nullptr && says.contains("cpu")) has.insert("cpu");
    });
    for (const std::string& device : own)
        if (says.count(device) == 0) has.erase(device);
        else has.insert(device);
    if (has != says)
        findings.fail(
            "expected those of its kernels in the manifest ({}), and perhaps of its own backends, "
            "got {}",
            fmt::join(has, ","), text);
}
const Registered r11{
    {"schema", "devices", "the manifest lists the devices of the table", at_table<devices>}};

}  // namespace
}  // namespace catena::check::schema
