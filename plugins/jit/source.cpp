// Generates kernel source, packs the arguments of launches, and explains compiler messages.
#include "binding.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <sstream>

namespace catena_jit {
namespace {

// Source that follows every dialect: proxies through which a formula indexes arrays of half precision,
// reading and writing float values.
constexpr const char* common = R"common(
namespace catena_kernel {
template <class H>
struct half_reader {
    const H* p;
    CATENA_FN float operator[](int64 k) const { return load(p[k]); }
};
template <class H>
struct half_reference {
    H* p;
    CATENA_FN operator float() const { return load(*p); }
    CATENA_FN half_reference& operator=(float x) { store(*p, x); return *this; }
    CATENA_FN half_reference& operator=(const half_reference& x) { store(*p, load(*x.p)); return *this; }
    CATENA_FN half_reference& operator+=(float x) { return *this = load(*p) + x; }
    CATENA_FN half_reference& operator-=(float x) { return *this = load(*p) - x; }
    CATENA_FN half_reference& operator*=(float x) { return *this = load(*p) * x; }
    CATENA_FN half_reference& operator/=(float x) { return *this = load(*p) / x; }
};
template <class H>
struct half_writer {
    H* p;
    CATENA_FN half_reference<H> operator[](int64 k) const { return half_reference<H>{p + k}; }
};
}
)common";

class Writer {
public:
    Writer(const Binding& binding, const char* dialect) : b_(binding), f_(binding.formula) {
        text_ = "#line 1 \"catena dialect\"\n";
        text_ += dialect;
        text_ += common;
        write_preamble();
        write_struct();
        if (f_.is_reduction()) write_reduction();
        else write_elementwise();
        text_ += "}  // namespace catena_kernel\n";
    }
    std::string take() { return std::move(text_); }

private:
    void line(const std::string& code) { text_ += code + "\n"; }
    // Puts the closing text under the author's label too: a missing token is reported at the next token.
    void user(const Code& code, const char* closing = "") {
        text_ += "#line 1 \"" + code.label + "\"\n" + code.text + "\n" + closing +
                 "\n#line 1 \"catena\"\n";
    }
    int type(std::size_t i) const { return b_.key.type[i]; }
    int form(std::size_t i) const { return b_.key.form[i]; }
    std::string storage(std::size_t i) const { return type_at(type(i)).name; }
    std::string value(std::size_t i) const { return type_at(type(i)).value; }
    const std::string& name(std::size_t i) const { return f_.at(i).name; }
    bool writes(std::size_t i) const { return f_.is_output(i) || f_.at(i).writes; }
    bool is_plain(std::size_t i) const { return form(i) <= form_strided; }
    static std::string member(std::size_t i) { return "catena_args.a" + std::to_string(i); }
    static std::string pointer(std::size_t i) { return "catena_a" + std::to_string(i); }
    bool has(const char* wanted) const {
        for (const Parameter& p : f_.parameters)
            if (p.name == wanted) return true;
        return false;
    }

    // Writes #include lines before the namespace, and the rest of the preamble inside it.
    void write_preamble() {
        std::string includes, rest, one;
        for (std::istringstream all(f_.preamble.text); std::getline(all, one);) {
            const std::size_t first = one.find_first_not_of(" \t");
            const bool include = first != std::string::npos && one[first] == '#' &&
                                 one.find("include", first) != std::string::npos;
            includes += (include ? one : "") + "\n";
            rest += (include ? "" : one) + "\n";
        }
        if (includes.find('#') != std::string::npos) user({f_.preamble.label, includes});
        line("namespace catena_kernel {");
        for (std::size_t i = 0; i < 26; ++i)
            if (b_.letter[i] >= 0)
                line("typedef " + std::string(type_at(b_.letter[i]).value) + " " +
                     static_cast<char>('A' + i) + ";");
        if (!f_.preamble.empty()) user({f_.preamble.label, rest});
    }

    void write_struct() {
        line("struct catena_arguments {");
        line(f_.is_reduction() ? "int64 n, outputs, pieces, length, phase; void* partial;"
                               : "int64 size;");
        for (std::size_t i = 0; i < f_.count(); ++i) {
            const std::string a = " a" + std::to_string(i) + ";";
            if (form(i) == form_number) line((is_floating(type(i)) ? "float64" : "int64") + a);
            else line((writes(i) ? "" : "const ") + storage(i) + "*" + a);
        }
        const std::string d = std::to_string(b_.key.dims), r = std::to_string(b_.key.reduced);
        const std::string k = std::to_string(std::max<std::size_t>(strided(), 1));
        if (f_.is_reduction())
            line("int64 kept[" + d + "], reduced[" + r + "], kept_stride[" + k + "][" + d +
                 "], reduced_stride[" + k + "][" + r + "];");
        else if (!is_flat()) line("int64 extent[" + d + "], stride[" + k + "][" + d + "];");
        line("};");
    }

    // Returns the number of arguments that have strides along the dimensions.
    std::size_t strided() const {
        std::size_t n = 0;
        for (std::size_t i = 0; i < (f_.is_reduction() ? f_.n_x : f_.count()); ++i)
            if (is_plain(i)) ++n;
        return n;
    }
    bool is_flat() const {
        if (b_.key.dims != 1) return false;
        for (std::size_t i = 0; i < f_.count(); ++i)
            if (form(i) == form_strided) return false;
        return true;
    }

    std::string loaded(std::size_t i, const std::string& place) const {
        return is_half(type(i)) ? "catena_kernel::load(" + place + ")" : place;
    }
    // Declares a variable that the author's code may leave unused.
    void declare(const std::string& declaration, const std::string& variable,
                 const std::string& initial) {
        line(declaration + " " + variable + " = " + initial + "; (void)" + variable + ";");
    }
    void declare_size(const char* member) {
        if (!has("n")) declare("const int64", "n", std::string("catena_args.") + member);
    }
    void declare_value(std::size_t i, const std::string& place) {
        declare((writes(i) ? "" : "const ") + value(i), name(i), loaded(i, place));
    }
    void store(std::size_t i, const std::string& place) {
        line(is_half(type(i)) ? "catena_kernel::store(" + place + ", " + name(i) + ");"
                              : place + " = " + name(i) + ";");
    }
    // Declares indexed arrays and numbers, which are the same for all elements.
    void write_shared() {
        for (std::size_t i = 0; i < f_.count(); ++i) {
            const std::string pointer = (writes(i) ? "" : "const ") + storage(i) + "* const";
            const std::string half = writes(i) ? "const half_writer<" : "const half_reader<";
            if (form(i) == form_number)
                declare("const " + value(i), name(i), "(" + value(i) + ")" + member(i));
            else if (form(i) == form_raw && is_half(type(i)))
                declare(half + storage(i) + ">", name(i), "{" + member(i) + "}");
            else if (form(i) == form_raw) declare(pointer, name(i), member(i));
        }
    }

    void write_elementwise() {
        if (is_flat()) write_plain_list();
        line("CATENA_ENTRY(" + f_.entry() + ", catena_arguments)");
        declare_size("size");
        write_shared();
        if (is_flat()) {
            for (std::size_t i = 0; i < f_.count(); ++i)
                if (form(i) == form_once && !writes(i)) declare_value(i, "*" + member(i));
        }
        if (!f_.loop_prep.empty()) user(f_.loop_prep, ";");
        if (is_flat()) write_flat_loop();
        else write_walk();
        if (!f_.after_loop.empty()) user(f_.after_loop, ";");
        line("CATENA_ENTRY_END");
    }
    void write_flat_loop() {
        line("CATENA_EACH(i, " + std::to_string(bytes_at_once()) + ")");
        write_body(
            [&](std::size_t i) {
                return form(i) == form_once ? member(i) + "[0]"
                                            : "CATENA_AT(a" + std::to_string(i) + ", i)";
            },
            [&](std::size_t i) { return form(i) != form_once || writes(i); });
        line("CATENA_EACH_END");
    }
    // Writes the list of the arguments that CATENA_AT takes.
    void write_plain_list() {
        std::string list = "#define CATENA_PLAIN(IN, OUT)";
        for (std::size_t i = 0; i < f_.count(); ++i)
            if (form(i) == form_next)
                list +=
                    (writes(i) ? " OUT(" : " IN(") + storage(i) + ", a" + std::to_string(i) + ")";
        line(list);
    }
    // Returns the largest element size; 0, one element per thread, if an array is indexed.
    int bytes_at_once() const {
        int most = 0;
        for (std::size_t i = 0; i < f_.count(); ++i) {
            if (form(i) == form_raw) return 0;
            if (form(i) == form_next) most = std::max(most, type_at(type(i)).dtype.bits / 8);
        }
        return most;
    }
    void write_walk() {
        line("CATENA_WALK(" + std::to_string(b_.key.dims) + ", " + std::to_string(strided()) + ")");
        std::size_t k = 0;
        for (std::size_t i = 0; i < f_.count(); ++i) {
            if (!is_plain(i)) continue;
            const std::string at = std::to_string(k);
            line((writes(i) ? "" : "const ") + storage(i) + "* const " + pointer(i) + " = " +
                 member(i) + " + CATENA_OFFSET(" + at + ");");
            if (form(i) == form_strided)
                line("const int64 catena_s" + std::to_string(i) + " = catena_args.stride[" + at +
                     "][" + std::to_string(b_.key.dims - 1) + "];");
            ++k;
        }
        line("CATENA_RUN(i, catena_lane)");
        write_body(
            [&](std::size_t i) {
                if (form(i) == form_once) return pointer(i) + "[0]";
                if (form(i) == form_next) return pointer(i) + "[catena_lane]";
                return pointer(i) + "[catena_lane * catena_s" + std::to_string(i) + "]";
            },
            [](std::size_t) { return true; });
        line("CATENA_WALK_END");
    }
    // Loads all values into variables and stores outputs at the end, because an output may be an input's
    // memory. The author's code may leave by continue or break.
    template <class Place, class Wanted>
    void write_body(const Place& place, const Wanted& wanted) {
        for (std::size_t i = 0; i < f_.count(); ++i)
            if (is_plain(i) && wanted(i)) declare_value(i, place(i));
        line("do {");
        user(f_.operation, "; } while (0);");
        for (std::size_t i = f_.n_x; i < f_.count(); ++i)
            if (is_plain(i)) store(i, place(i));
    }

    void write_reduction() {
        std::string v = f_.reduce_type;
        if (v.empty()) v = value(f_.n_x);
        else if (const int known = type_by_name(v); known >= 0) v = type_at(known).value;
        line("typedef " + v + " catena_value;");
        line("struct catena_operation {");
        const std::pair<std::string, std::size_t> constants[] = {
            {"inputs", strided()},
            {"kept", b_.key.dims},
            {"reduced", b_.key.reduced},
            {"along", b_.key.along},
            {"has_identity", f_.has_identity},
        };
        for (const auto& [constant, n] : constants)
            line("static constexpr int " + constant + " = " + std::to_string(n) + ";");
        line("static CATENA_FN catena_value identity() { return (");
        if (f_.has_identity) user(f_.identity, "); }");
        else line("catena_value()); }");
        line(
            "static CATENA_FN catena_value join(const catena_value a, const catena_value b) { "
            "return (");
        user(f_.reduce, "); }");
        line(
            "static CATENA_FN catena_value map(const catena_arguments& catena_args, "
            "const int64* catena_offset, int64 catena_lane, int64 i, int64 j) {");
        line("(void)i; (void)j; (void)catena_lane; (void)catena_offset;");
        declare_size("n");
        write_shared();
        std::size_t k = 0;
        for (std::size_t i = 0; i < f_.n_x; ++i) {
            if (!is_plain(i)) continue;
            const std::string at = std::to_string(k++);
            std::string place = member(i) + "[catena_offset[" + at + "]";
            if (form(i) == form_next) place += " + catena_lane";
            if (form(i) == form_strided)
                place += std::string(" + catena_lane * catena_args.") +
                         (b_.key.along != 0 ? "reduced_stride[" : "kept_stride[") + at + "][" +
                         std::to_string((b_.key.along != 0 ? b_.key.reduced : b_.key.dims) - 1) +
                         "]";
            declare_value(i, place + "]");
        }
        line("return (");
        user(f_.operation, "); }");
        line(
            "static CATENA_FN void finish(const catena_arguments& catena_args, const catena_value "
            "a, "
            "int64 j) {");
        line("(void)j;");
        declare_size("n");
        write_shared();
        for (std::size_t i = f_.n_x; i < f_.count(); ++i)
            line(value(i) + " " + name(i) + " = " + value(i) + "();");
        line("do {");
        user(f_.finish, "; } while (0);");
        for (std::size_t i = f_.n_x; i < f_.count(); ++i) store(i, member(i) + "[j]");
        line("}};");
        line("CATENA_REDUCTION(" + f_.entry() +
             ", catena_arguments, catena_operation, catena_value)");
    }

    const Binding& b_;
    const Formula& f_;
    std::string text_;
};

// The first position in the author's code that messages report: "LABEL:3:7: error" or "LABEL(3): error".
struct Place {
    const Code* code = nullptr;
    std::size_t line = 0;
    std::size_t column = 0;
};

std::string line_of(const std::string& text, std::size_t number) {
    std::istringstream lines(text);
    std::string line;
    while (number-- > 0 && std::getline(lines, line)) {
    }
    return line;
}

Place first_place(const Formula& f, const std::string& messages) {
    std::istringstream lines(messages);
    for (std::string one; std::getline(lines, one);) {
        if (one.find("error") == std::string::npos) continue;
        for (const Code* code : {&f.preamble, &f.loop_prep, &f.after_loop, &f.reduce, &f.finish,
                                 &f.identity, &f.operation}) {
            if (!one.starts_with(code->label)) continue;
            Place place{code};
            const char* const rest = one.c_str() + code->label.size();
            if (std::sscanf(rest, ":%zu:%zu", &place.line, &place.column) < 1)
                std::sscanf(rest, "(%zu", &place.line);
            if (place.line == 0) continue;
            // An error behind the last line means that something is missing at the end.
            const auto breaks = std::ranges::count(code->text, '\n');
            const std::size_t lines_of_code = 1 + static_cast<std::size_t>(breaks);
            if (place.line > lines_of_code) {
                place.line = lines_of_code;
                place.column = line_of(code->text, place.line).size() + 1;
            }
            return place;
        }
    }
    return {};
}

}  // namespace

std::string make_source(const Binding& binding, const char* dialect) {
    return Writer(binding, dialect).take();
}

std::size_t pack_arguments(const Binding& b, const Cut& cut, unsigned char* to) {
    const Formula& f = b.formula;
    std::size_t bytes = 0;
    const auto add = [&](auto value) {
        static_assert(sizeof value == 8);
        if (bytes + sizeof value > max_args_bytes)
            b.refuse(CATENA_E_UNSUPPORTED, "arguments", "fewer, or shapes with fewer dimensions",
                     "more than a launch can carry");
        std::memcpy(to + bytes, &value, sizeof value);
        bytes += sizeof value;
    };
    const auto add_each = [&](const Dims& dims, const int64_t* values) {
        std::for_each_n(values, dims.n, add);
    };
    if (f.is_reduction()) {
        for (const int64_t value : {b.reduced, b.outputs, cut.pieces, cut.length, cut.phase})
            add(value);
        add(cut.partial);
    } else {
        add(b.size);
    }
    bool flat = b.key.dims == 1;
    std::array<std::size_t, max_arguments> strided;
    std::size_t n = 0;
    for (std::size_t i = 0; i < f.count(); ++i) {
        if (b.key.form[i] == form_number) {
            const catena_operand& x = b.call.x[i];
            const bool given = is_floating(type_of(x.dtype));
            if (is_floating(b.key.type[i]))
                add(given ? x.number.f : static_cast<double>(x.number.i));
            else add(given ? static_cast<int64_t>(x.number.f) : x.number.i);
            continue;
        }
        const catena_tensor& t = *b.tensor(i);
        add(static_cast<char*>(t.dl.data) + t.dl.byte_offset);
        if (b.key.form[i] == form_strided) flat = false;
        if (b.key.form[i] <= form_strided && (!f.is_reduction() || i < f.n_x)) strided[n++] = i;
    }
    if (f.is_reduction()) {
        add_each(b.dims, b.dims.extent);
        add_each(b.reduced_dims, b.reduced_dims.extent);
        for (const Dims* dims : {&b.dims, &b.reduced_dims}) {
            for (std::size_t k = 0; k < n; ++k) add_each(*dims, dims->stride[strided[k]]);
            if (n == 0) add_each(*dims, dims->extent);  // the struct has room for one argument
        }
    } else if (!flat) {
        add_each(b.dims, b.dims.extent);
        for (std::size_t k = 0; k < n; ++k) add_each(b.dims, b.dims.stride[strided[k]]);
    }
    return bytes;
}

std::string explain(const Binding& binding, const char* compiler, const std::string& messages) {
    const Formula& f = binding.formula;
    const Place place = first_place(f, messages);
    std::string text = "[" + f.name + "] ";
    if (place.code != nullptr) {
        const std::size_t part = place.code->label.find('(');
        text += part == std::string::npos
                    ? "operation"
                    : place.code->label.substr(part + 1, place.code->label.size() - part - 2);
        text += ", line " + std::to_string(place.line) +
                ": expected code that compiles, got\n    " + line_of(place.code->text, place.line);
        if (place.column > 0) text += "\n    " + std::string(place.column - 1, ' ') + "^";
    } else {
        text += "code: expected code that compiles, got none";
    }
    text +=
        "\nThe " + std::string(compiler) + " compiler says, with " + binding.types_text() + ":\n";
    constexpr std::size_t most = 4000;
    text += messages.size() > most ? messages.substr(0, most) + "\n..." : messages;
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text;
}

}  // namespace catena_jit
