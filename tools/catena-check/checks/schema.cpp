// What the table says of functions, kernels and devices: complete, and no contradiction.
#include "plugin.hpp"

#include <catena/testing/example.hpp>
#include <testing/functions.hpp>
#include <testing/library.hpp>

#include <fmt/ranges.h>

#include <ids.hpp>
#include <limits.hpp>

#include <algorithm>
#include <bit>
#include <cctype>
#include <optional>
#include <set>

namespace catena::check {
namespace {

using testing::World;
using testing::detail::Module;
using testing::detail::TypeVars;

// The table, and functions of catena's own and --with by name.
class Table {
public:
    explicit Table(const Subject& subject)
        : world_(make_world(subject)),
          module_(subject.file),
          table_(module_.table(World::host(), *world_, false)) {}

    template <class Body>
    void functions(const Body& body) const {
        for (std::uint32_t i = 0; i < table_.n_functions; ++i) body(*table_.functions[i]);
    }
    template <class Body>
    void kernels(const Body& body) const {
        for (std::uint32_t i = 0; i < table_.n_kernels; ++i) body(*table_.kernels[i]);
    }
    // With those of --with.
    const std::vector<const catena_kernel*>& all_kernels() const { return world_->kernels(); }
    const catena_plugin& raw() const { return table_; }
    const catena_manifest& manifest() const { return *module_.manifest; }
    const catena_function* find(const std::string& name) const {
        const catena_function* found = nullptr;
        functions([&](const catena_function& f) {
            if (name == f.name) found = &f;
        });
        if (found != nullptr) return found;
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

std::string field(const char* text, std::size_t n) { return {text, strnlen(text, n)}; }

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
        if (!text.empty()) findings.fail(text);
    } catch (const testing::Failure&) {
        findings.skip("see load/entry");
    }
}
const Registered r1{
    {"schema", "table",
     "no entry is NULL, or lacks what it must have; sizes, counts and kinds are such as there are",
     table, Each::plugin, false}};

// What wrappers in any language can be called.
bool identifier(const std::string& name) {
    const auto letter = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    };
    if (name.empty() || name.size() > 64 || !letter(name[0])) return false;
    return std::all_of(name.begin(), name.end(),
                       [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

// What the host takes for the name of a device or an extension.
bool plain_name(const std::string& name) {
    return !name.empty() && name.size() <= 200 && std::all_of(name.begin(), name.end(), [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
               std::strchr("._-:/", c) != nullptr;
    });
}

void names(const Subject& subject, Findings& findings) {
    const Table table(subject);
    const std::string id = field(table.manifest().id, sizeof table.manifest().id);
    std::set<std::string> seen;
    table.functions([&](const catena_function& f) {
        const std::string name = f.name;
        if (!is_id(name)) findings.fail("'{}': expected {}", name, id_rule);
        if (name.size() > 200)
            findings.fail("'{}': expected at most 200 bytes, got {}", name, name.size());
        if (!seen.insert(name).second) findings.fail(name + ": it is there twice");
        if (name.rfind("catena.", 0) == 0 && id.rfind("org.catena.", 0) != 0)
            findings.fail("{}: catena.* are catena's own: expected a name as in org.example.thing",
                          name);
        std::set<std::string> arguments;  // inputs and attributes share the examples' names
        std::set<std::string> outputs;
        const auto meet = [&](std::set<std::string>& known, const char* what, const char* text) {
            if (!identifier(text))
                findings.fail("{}: {} '{}': expected letters, digits and _", name, what, text);
            if (!known.insert(text).second)
                findings.fail("{}: {} {}: it is there twice", name, what, text);
        };
        for (std::uint32_t i = 0; i < f.n_inputs; ++i) meet(arguments, "input", f.inputs[i]->name);
        for (std::uint32_t i = 0; i < f.n_attrs; ++i)
            meet(arguments, "attribute", f.attrs[i]->name);
        for (std::uint32_t i = 0; i < f.n_outputs; ++i) meet(outputs, "output", f.outputs[i]->name);
    });
    const auto plain = [&](const char* what, const std::string& text) {
        if (!plain_name(text))
            findings.fail("{} '{}': expected letters, digits and . _ - : /", what, text);
    };
    table.kernels([&](const catena_kernel& k) { plain("device of a kernel", k.device); });
    for (std::uint32_t i = 0; i < table.raw().n_backends; ++i)
        plain("backend", table.raw().backends[i]->name);
    for (std::uint32_t i = 0; i < table.raw().n_extensions; ++i) {
        const catena_extension& e = *table.raw().extensions[i];
        plain("extension", e.id);
        if (*e.device != 0) plain("device of an extension", e.device);
    }
}
const Registered r2{{"schema", "names",
                     "functions are named in reverse DNS; ports and attributes once, by "
                     "identifiers; devices and extensions without blanks",
                     names}};

void docs(const Subject& subject, Findings& findings) {
    const Table table(subject);
    table.functions([&](const catena_function& f) {
        if (*f.doc == 0) findings.fail("{}: expected a text, got none", f.name);
        for (std::uint32_t i = 0; i < f.n_attrs; ++i)
            if (*f.attrs[i]->doc == 0)
                findings.fail("{}: attribute {}: expected a text, got none", f.name,
                              f.attrs[i]->name);
    });
}
const Registered r3{{"schema", "docs", "functions and attributes say what they are", docs}};

bool is_list(std::int32_t kind) { return kind == CATENA_ATTR_INTS || kind == CATENA_ATTR_FLOATS; }
bool is_number(std::int32_t kind) { return kind == CATENA_ATTR_INT || kind == CATENA_ATTR_FLOAT; }
double number(const catena_value& v, std::uint32_t i = 0) {
    switch (v.kind) {
        case CATENA_ATTR_FLOAT: return v.v.f;
        case CATENA_ATTR_INTS: return static_cast<double>(v.v.ints[i]);
        case CATENA_ATTR_FLOATS: return v.v.floats[i];
        default: return static_cast<double>(v.v.i);
    }
}

void attributes(const Subject& subject, Findings& findings) {
    const Table table(subject);
    table.functions([&](const catena_function& f) {
        bool optional = false;
        for (std::uint32_t i = 0; i < f.n_attrs; ++i) {
            const catena_attr_spec& a = *f.attrs[i];
            const auto fail = [&](const std::string& text) {
                findings.fail("{}: attribute {}: {}", f.name, a.name, text);
            };
            constexpr std::uint32_t known =
                CATENA_ATTR_REQUIRED | CATENA_ATTR_RANGED | CATENA_ATTR_HINT;
            if ((a.flags & ~known) != 0 || a.reserved != 0)
                fail(fmt::format("flags: expected those that there are, got {:#x}", a.flags));
            const bool required = (a.flags & CATENA_ATTR_REQUIRED) != 0;
            optional = optional || !required;
            if (a.kind == CATENA_ATTR_BOOL && !required && a.def.v.i != 0 && a.def.v.i != 1)
                fail(fmt::format("default: expected 0 or 1, got {}", a.def.v.i));
            if ((a.flags & CATENA_ATTR_RANGED) != 0) {
                if (!is_number(a.kind) && !is_list(a.kind)) {
                    fail("a range, but it is no number");
                } else if (!is_number(a.lo.kind) || !is_number(a.hi.kind) ||
                           !(number(a.lo) <= number(a.hi))) {
                    fail("range: expected two numbers in order");
                } else if (!required) {
                    for (std::uint32_t k = 0; k < (is_list(a.kind) ? a.def.n : 1); ++k)
                        if (!(number(a.def, k) >= number(a.lo) && number(a.def, k) <= number(a.hi)))
                            fail(fmt::format("default: expected {} to {}, got {}", number(a.lo),
                                             number(a.hi), number(a.def, k)));
                }
            }
            if (a.choices == nullptr) continue;
            if (a.kind != CATENA_ATTR_STRING) {
                fail("choices, but it is no string");
                continue;
            }
            std::set<std::string> choices;
            for (const char* const* c = a.choices; *c != nullptr; ++c) choices.insert(*c);
            if (!required && !choices.contains(a.def.v.s))
                fail(fmt::format("default: expected one of its choices {}, got {}",
                                 fmt::join(choices, ", "), a.def.v.s));
        }
    });
}
const Registered r4{
    {"schema", "attributes", "kinds, ranges, choices, and defaults within them", attributes}};

bool beyond(std::uint64_t set, std::uint32_t n, bool variadic) {
    if (variadic) set &= ~CATENA_RETAIN_REST;
    return n < 64 && (set >> n) != 0;
}
bool variadic(const catena_function& f) {
    return f.n_inputs > 0 && (f.inputs[f.n_inputs - 1]->flags & CATENA_PORT_VARIADIC) != 0;
}

void ports(const Subject& subject, Findings& findings) {
    const Table table(subject);
    table.functions([&](const catena_function& f) {
        const auto fail = [&](const std::string& text) { findings.fail("{}: {}", f.name, text); };
        for (const bool in : {true, false})
            for (std::uint32_t i = 0; i < (in ? f.n_inputs : f.n_outputs); ++i) {
                const catena_port_spec& p = in ? *f.inputs[i] : *f.outputs[i];
                const std::uint32_t legal =
                    CATENA_PORT_NON_DIFFERENTIABLE |
                    (in ? CATENA_PORT_OPTIONAL | CATENA_PORT_MUTATED : CATENA_PORT_HIDDEN) |
                    (in && i + 1 == f.n_inputs ? +CATENA_PORT_VARIADIC : 0u);
                if ((p.flags & ~legal) != 0)
                    fail(fmt::format("{}: flags: expected those of {}, got {:#x}", p.name,
                                     in ? "an input" : "an output", p.flags));
                if (*p.type_var == 0)
                    fail(fmt::format("{}: expected a type_var, got none", p.name));
            }
        if (TypeVars(f).size() > CATENA_MAX_TYPE_VARS)
            fail(fmt::format("expected at most {} type variables, got {}", +CATENA_MAX_TYPE_VARS,
                             TypeVars(f).size()));
        if (beyond(f.retain_x, f.n_inputs, variadic(f)) || beyond(f.retain_y, f.n_outputs, false))
            fail(
                fmt::format("retain_x, retain_y: expected ports of its {} inputs and {} outputs, "
                            "got {:#x} and {:#x}",
                            f.n_inputs, f.n_outputs, f.retain_x, f.retain_y));
        const bool view = (f.flags & CATENA_FUNCTION_VIEW) != 0;
        if (view && (f.n_outputs != 1 || f.n_inputs == 0 ||
                     (f.inputs[0]->flags & (CATENA_PORT_OPTIONAL | CATENA_PORT_MUTATED)) != 0 ||
                     std::strcmp(f.inputs[0]->type_var, f.outputs[0]->type_var) != 0))
            fail("a view: expected one output, of the dtype of a first input that is always there");
        if ((f.flags & CATENA_FUNCTION_ADDITION) != 0 && (f.n_inputs != 2 || f.n_outputs != 1))
            fail(fmt::format("the addition: expected 2 inputs and 1 output, got {} and {}",
                             f.n_inputs, f.n_outputs));
        if ((f.flags & CATENA_FUNCTION_ADDITION) != 0 && std::strcmp(f.name, "catena.add") != 0)
            fail("the addition: expected catena.add alone, since a host takes one");
        if ((f.flags >> 6) != 0)
            fail(fmt::format("flags: expected those that there are, got {:#x}", f.flags));
    });
    table.kernels([&](const catena_kernel& k) {
        const catena_function* f = table.find(k.function);
        if (f != nullptr && (beyond(k.retain_x, f->n_inputs, variadic(*f)) ||
                             beyond(k.retain_y, f->n_outputs, false)))
            findings.fail(
                "{}: retain_x, retain_y: expected ports of the function, got {:#x} and {:#x}",
                label(k), k.retain_x, k.retain_y);
    });
}
const Registered r5{{"schema", "ports",
                     "flags and type variables are legal, retained sets within the ports", ports}};

void versions(const Subject& subject, Findings& findings) {
    const Table table(subject);
    table.functions([&](const catena_function& f) {
        if (f.version < 1 || f.version > newest_version)
            findings.fail("{}: expected 1 to {}, got {}", f.name, newest_version, f.version);
    });
    table.kernels([&](const catena_kernel& k) {
        const catena_function* f = table.find(k.function);
        if (k.version_min > k.version_max)
            findings.fail("{}: expected a range, got {} to {}", label(k), k.version_min,
                          k.version_max);
        else if (f != nullptr && (f->version < k.version_min || f->version > k.version_max))
            findings.fail("{}: expected version {} among those that it computes, got {} to {}",
                          label(k), f->version, k.version_min, k.version_max);
    });
}
const Registered r6{
    {"schema", "versions", "from 1; kernels compute their function's version", versions}};

// As the host reads it: retained inputs, retained outputs, all gy; a gx for each differentiable
// input.
void grad_function(const Table& table, const catena_function& f, Findings& findings) {
    const catena_function* const g = table.find(f.grad_function);
    const std::string where = fmt::format("{}: grad_function {}: ", f.name, f.grad_function);
    if (g == nullptr) return findings.fail(where + "expected a function that there is, got none");
    bool same = f.n_attrs == g->n_attrs;
    for (std::uint32_t i = 0; same && i < f.n_attrs; ++i)
        same = f.attrs[i]->kind == g->attrs[i]->kind &&
               std::strcmp(f.attrs[i]->name, g->attrs[i]->name) == 0;
    if (!same) findings.fail(where + "expected the same attributes, got others");
    if (variadic(f) || variadic(*g)) return;
    const auto inputs =
        static_cast<std::uint32_t>(std::popcount(f.retain_x) + std::popcount(f.retain_y)) +
        f.n_outputs;
    std::uint32_t outputs = 0;
    for (std::uint32_t i = 0; i < f.n_inputs; ++i)
        outputs += (f.inputs[i]->flags & CATENA_PORT_NON_DIFFERENTIABLE) == 0;
    if (g->n_inputs != inputs || g->n_outputs != outputs)
        findings.fail(where + fmt::format("expected {} inputs and {} outputs, got {} and {}",
                                          inputs, outputs, g->n_inputs, g->n_outputs));
}

void gradient(const Subject& subject, Findings& findings) {
    const Table table(subject);
    table.functions([&](const catena_function& f) {
        if (f.gradient != nullptr && f.grad_function != nullptr)
            findings.fail("{}: expected one of gradient() and grad_function, got both", f.name);
        if ((f.flags & CATENA_FUNCTION_NOT_DIFFERENTIABLE) != 0 &&
            (f.gradient != nullptr || f.grad_function != nullptr))
            findings.fail("{}: NOT_DIFFERENTIABLE: expected no gradient, got one", f.name);
        if (f.grad_function != nullptr) grad_function(table, f, findings);
    });
}
const Registered r7{{"schema", "gradient",
                     "one gradient at most; a grad_function is there, with the ports that it needs",
                     gradient}};

bool legal(catena_dtype d) {
    const bool power = d.bits == 8 || d.bits == 16 || d.bits == 32 || d.bits == 64;
    switch (d.code) {
        case CATENA_CODE_INT:
        case CATENA_CODE_UINT: return d.lanes == 1 && power;
        case CATENA_CODE_FLOAT: return d.lanes == 1 && power && d.bits > 8;
        case CATENA_CODE_BFLOAT: return d.lanes == 1 && d.bits == 16;
        case CATENA_CODE_BOOL: return d.lanes == 1 && d.bits == 8;
        default: return false;
    }
}

void kernels(const Subject& subject, Findings& findings) {
    const Table table(subject);
    table.kernels([&](const catena_kernel& k) {
        const auto fail = [&](const std::string& text) { findings.fail("{}: {}", label(k), text); };
        const catena_function* const f = table.find(k.function);
        if (f == nullptr)
            return fail(
                "expected a function of the plugin, of catena's own or of --with, got one that "
                "nobody has");
        if ((f->flags & CATENA_FUNCTION_VIEW) != 0) fail("its function is a view, without kernels");
        constexpr std::uint32_t known =
            CATENA_KERNEL_ADDS | CATENA_KERNEL_STRIDED | CATENA_KERNEL_DETERMINISTIC;
        if ((k.flags & ~known) != 0)
            fail(fmt::format("flags: expected those that there are, got {:#x}", k.flags));
        const std::size_t n = TypeVars(*f).size();
        if (k.n_types == 0 && n > 0) fail("expected rows of dtypes, got none");
        std::set<std::string> rows;
        for (std::uint32_t r = 0; r < k.n_types; ++r) {
            std::string row;
            for (std::size_t i = 0; i < n; ++i) {
                const catena_dtype d = k.types[r * n + i];
                if (!legal(d))
                    fail(fmt::format(
                        "row {}: expected a dtype that there is, got code {}, {} bits, {} lanes", r,
                        d.code, d.bits, d.lanes));
                row += fmt::format("{}:{} ", d.code, d.bits);
            }
            if (!rows.insert(row).second) fail(fmt::format("row {}: it is there twice", r));
        }
    });
    table.functions([&](const catena_function& f) {
        if ((f.flags & CATENA_FUNCTION_VIEW) != 0) return;
        bool computed = false;
        for (const catena_kernel* k : table.all_kernels())
            computed = computed ||
                       (k->phase == CATENA_PHASE_FORWARD && std::strcmp(k->function, f.name) == 0);
        if (!computed)
            findings.fail("{}: expected a forward kernel, got none: nobody can call it", f.name);
    });
}
const Registered r8{{"schema", "kernels",
                     "each has a function, and each function a kernel; rows of dtypes are legal",
                     kernels}};

void variants(const Subject& subject, Findings& findings) {
    const Table table(subject);
    table.kernels([&](const catena_kernel& k) {
        if (k.n_saved > 0 && k.variant == nullptr)
            findings.fail(label(k) + ": it saves tensors: expected a variant, got none");
        if (k.variant == nullptr) return;
        bool paired = false;
        std::optional<std::uint32_t> saved;
        table.kernels([&](const catena_kernel& other) {
            if (other.phase == k.phase || other.variant == nullptr ||
                std::strcmp(other.variant, k.variant) != 0 ||
                std::strcmp(other.function, k.function) != 0 ||
                std::strcmp(other.device, k.device) != 0)
                return;
            paired = true;
            saved = other.n_saved;
        });
        if (!paired)
            findings.fail("{}: variant '{}': expected a {} kernel of it, got none", label(k),
                          k.variant, k.phase == CATENA_PHASE_FORWARD ? "backward" : "forward");
        else if (*saved != k.n_saved)
            findings.fail(
                "{}: variant '{}': expected {} saved tensors as in the other phase, got {}",
                label(k), k.variant, *saved, k.n_saved);
    });
}
const Registered r9{{"schema", "variants",
                     "forward and backward of a variant come together, with the same saved tensors",
                     variants}};

void examples(const Subject& subject, Findings& findings) {
    const Table table(subject);
    table.functions([&](const catena_function& f) {
        if (!CATENA_HAS(&f, catena_function, examples) || f.examples == nullptr) return;
        for (std::size_t i = 0; f.examples[i] != nullptr; ++i) try {
                if (i == 64) throw std::runtime_error(fmt::format("[{}] over 64 examples", f.name));
                const auto e = testing::parse_example(f, f.examples[i]);
                for (std::uint32_t k = 0; k < f.n_inputs; ++k)
                    if (!e.inputs[k].present && (f.inputs[k]->flags & CATENA_PORT_OPTIONAL) == 0)
                        findings.fail("[{}] example \"{}\": expected {}, got none", f.name,
                                      f.examples[i], f.inputs[k]->name);
                for (std::uint32_t k = 0; k < f.n_attrs; ++k)
                    if ((f.attrs[k]->flags & CATENA_ATTR_REQUIRED) != 0 &&
                        e.attrs.find(f.attrs[k]->name) == nullptr)
                        findings.fail("[{}] example \"{}\": expected {}, got none", f.name,
                                      f.examples[i], f.attrs[k]->name);
            } catch (const std::exception& e) {
                findings.fail(e.what());
                if (i >= 64) break;
            }
    });
}
const Registered r10{
    {"schema", "examples", "they name what there is, and give what is required", examples}};

void devices(const Subject& subject, Findings& findings) {
    const Table table(subject);
    std::set<std::string> has, own, says;
    table.kernels([&](const catena_kernel& k) { has.insert(k.device); });
    // Hosts ask whether others bring a device, and not of those that the plugin brings itself.
    for (std::uint32_t i = 0; i < table.raw().n_backends; ++i)
        own.insert(table.raw().backends[i]->name);
    for (std::uint32_t i = 0; i < table.raw().n_extensions; ++i)
        if (const char* const device = table.raw().extensions[i]->device; *device != 0)
            has.insert(device);  // an empty one: it belongs to none
    const std::string text = field(table.manifest().devices, sizeof table.manifest().devices);
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find(',', begin), text.size());
        says.insert(text.substr(begin, end - begin));
        begin = end + 1;
    }
    for (const std::string& device : own)
        if (says.count(device) == 0) has.erase(device);
        else has.insert(device);
    if (has != says)
        findings.fail(
            "expected those of its kernels in the manifest ({}), and perhaps of its own backends, "
            "got {}",
            fmt::join(has, ","), text);
}
const Registered r11{{"schema", "devices", "the manifest lists the devices of the table", devices}};

}  // namespace
}  // namespace catena::check
