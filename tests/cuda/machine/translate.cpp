// Translates the text of a kernel into instructions: registers become slots, labels become numbers, and
// the bodies of called functions are inserted at each call, which PTX allows because calls are direct.
#include <algorithm>
#include <cstring>
#include <map>

#include "ptx.hpp"
#include "warp.hpp"

namespace catena_machine {
namespace {

constexpr std::size_t lanes = 32;

struct Symbol {
    bool is_register = false;
    Type type = Type::none;
    Slot slot = no_slot;        // of a register; of the first one of a family
    std::size_t count = 0;      // of the registers of a family, such as %r<11>
    std::uint64_t address = 0;  // of a variable
};
using Scope = std::map<std::string_view, Symbol>;

// A body that is being translated: the kernel's, or that of a function that it calls.
struct Frame {
    std::vector<Scope> scopes;
    // Labels are known in their block and in those within it. A block has a number.
    using Blocks = std::vector<int>;
    Blocks blocks = {0};
    int n_blocks = 0;
    std::map<std::pair<int, std::string_view>, std::int32_t> labels;
    struct Jump {
        std::size_t at;          // the instruction
        std::string_view label;  // empty: the end of the function
        Blocks from;
    };
    std::vector<Jump> jumps;
    bool inlined = false;
};

constexpr std::string_view special_names[] = {
    "%tid.x",           "%tid.y",       "%tid.z",       "%ntid.x",
    "%ntid.y",          "%ntid.z",      "%ctaid.x",     "%ctaid.y",
    "%ctaid.z",         "%nctaid.x",    "%nctaid.y",    "%nctaid.z",
    "%laneid",          "%warpid",      "%nwarpid",     "%dynamic_smem_size",
    "%total_smem_size", "%lanemask_eq", "%lanemask_le", "%lanemask_lt",
    "%lanemask_ge",     "%lanemask_gt"};

class Translator {
public:
    Translator(const Module::Parsed& module, const Declared& kernel) : module_(module) {
        code_->name = kernel.name;
        code_->files = module.files;
        code_->maximum_threads = kernel.maximum_threads;
        for (const auto& [name, v] : module.variables)
            if (v.space != Space::shared) {
                const auto begin =
                    reinterpret_cast<std::uintptr_t>(module.memory.data()) + v.offset;
                code_->variables.push_back({begin, begin + v.bytes});
            }
        Frame frame;
        frame.scopes.emplace_back();
        for (const std::string_view text : split(kernel.parameters)) {
            const Declaration d = declaration(text, kernel.line);
            std::size_t& used = code_->argument_bytes;
            used = (used + d.alignment - 1) / d.alignment * d.alignment;
            frame.scopes.back()[d.name] = {false, d.type, no_slot, 0, param_window + used};
            code_->parameters.push_back({used, d.bytes(), d.alignment});
            used += d.bytes();
        }
        body(frame, kernel);
        Instruction end;
        end.control = Control::exit;
        predicate_ = no_slot;
        emit(end);
    }
    std::shared_ptr<Code> code() { return code_; }

private:
    void body(Frame& frame, const Declared& function);
    void directive(std::string_view word, Reader& reader);
    void instruction(std::string_view op, std::string_view text);
    void call(const std::vector<std::string_view>& operands);
    void memory(const std::vector<std::string_view>& name,
                const std::vector<std::string_view>& operands);
    void convert(const std::vector<std::string_view>& name,
                 const std::vector<std::string_view>& operands);
    void compare(const std::vector<std::string_view>& name,
                 const std::vector<std::string_view>& operands);
    void by_table(const std::string& name, const std::vector<std::string_view>& operands);
    void move(Type type, const std::vector<std::string_view>& operands);

    [[noreturn]] void stop(const std::string& why) const {
        refuse(line_, why + " in '" + std::string(text_) + "'");
    }
    void emit(Instruction in) {
        in.predicate = predicate_;
        in.negated = negated_;
        code_->instructions.push_back(in);
        code_->origins.push_back({text_, line_, source_, caller_});
    }
    Slot new_slot(std::size_t bytes, std::size_t n = 1) {
        const Slot slot = static_cast<Slot>(code_->register_bytes * 2);
        code_->register_bytes += lanes * bytes * n;
        return slot;
    }
    // A variable of the module is given shared memory when the kernel first names it.
    std::size_t new_shared(const Variable& v) {
        const auto known = shared_.find(&v);
        if (known != shared_.end()) return known->second;
        std::size_t& used = code_->shared_bytes;
        used = (used + v.alignment - 1) / v.alignment * v.alignment;
        used += v.bytes;
        return shared_[&v] = used - v.bytes;
    }
    Slot constant(std::uint64_t bits, std::size_t bytes);
    const Symbol* find(std::string_view name, Symbol& of_family);
    const Symbol& symbol(std::string_view name, Symbol& of_family) {
        const Symbol* s = find(name, of_family);
        if (s == nullptr) stop("unknown name '" + std::string(name) + "'");
        return *s;
    }
    // Returns the slot of a register or literal. width: receives the bytes of the register.
    Slot operand(std::string_view text, Type type, std::uint8_t* width = nullptr);
    Slot result(std::string_view text, std::uint8_t* width = nullptr);
    void address(std::string_view text, Instruction& in);
    const Entry& entry(const std::string& name) const {
        const Entry* e = find_entry(name);
        if (e == nullptr) stop("unknown instruction '" + name + "'");
        return *e;
    }

    const Module::Parsed& module_;
    std::shared_ptr<Code> code_ = std::make_shared<Code>();
    std::map<std::pair<std::uint64_t, std::size_t>, Slot> constants_;
    std::map<Special, Slot> specials_;
    std::map<const Variable*, std::size_t> shared_;
    Frame* frame_ = nullptr;
    int depth_ = 0;
    // Of the statement that is being translated.
    std::string_view text_;
    std::uint32_t line_ = 0;
    Source source_, caller_;
    Slot predicate_ = no_slot;
    bool negated_ = false;
};

Slot Translator::constant(std::uint64_t bits, std::size_t bytes) {
    if (bytes < 8) bits &= (std::uint64_t{1} << bytes * 8) - 1;
    const auto [place, fresh] = constants_.try_emplace({bits, bytes}, no_slot);
    if (fresh) {
        place->second = static_cast<Slot>(code_->constants.size() * 2 + 1);
        for (std::size_t i = 0; i < lanes; ++i) {
            const auto* data = reinterpret_cast<const unsigned char*>(&bits);
            code_->constants.insert(code_->constants.end(), data, data + bytes);
        }
    }
    return place->second;
}

const Symbol* Translator::find(std::string_view name, Symbol& of_family) {
    const std::size_t stem = name.find_last_not_of("0123456789") + 1;
    for (auto scope = frame_->scopes.rbegin(); scope != frame_->scopes.rend(); ++scope) {
        if (const auto found = scope->find(name); found != scope->end()) return &found->second;
        if (stem == name.size()) continue;
        const auto family = scope->find(name.substr(0, stem));
        if (family == scope->end() || family->second.count == 0) continue;
        const std::size_t index = std::strtoul(std::string(name.substr(stem)).c_str(), nullptr, 10);
        if (index >= family->second.count) continue;
        of_family = family->second;
        of_family.slot += static_cast<Slot>(index * lanes * size_of(of_family.type) * 2);
        return &of_family;
    }
    const auto variable = module_.variables.find(name);
    if (variable == module_.variables.end()) return nullptr;
    const Variable& v = variable->second;
    if (v.space == Space::shared)
        return &(frame_->scopes.front()[name] = {false, Type::b8, no_slot, 0,
                                                 v.is_dynamic ? dynamic_shared : new_shared(v)});
    of_family = {false, Type::b8};
    of_family.address = reinterpret_cast<std::uintptr_t>(module_.memory.data()) + v.offset;
    return &of_family;
}

Slot Translator::operand(std::string_view text, Type type, std::uint8_t* width) {
    const std::size_t bytes = size_of(type);
    if (width != nullptr) *width = static_cast<std::uint8_t>(bytes);
    if (const auto bits = literal(text, type)) return constant(*bits, bytes);
    if (text == "WARP_SZ") return constant(lanes, bytes);
    if (text == "true" || text == "false") return constant(text == "true", 1);
    for (std::size_t i = 0; i < std::size(special_names); ++i) {
        if (special_names[i] != text) continue;
        const auto [place, fresh] = specials_.try_emplace(static_cast<Special>(i), no_slot);
        if (fresh) {
            place->second = new_slot(4);
            code_->specials.emplace_back(place->second, static_cast<Special>(i));
        }
        if (width != nullptr) *width = 4;
        return place->second;
    }
    std::uint64_t offset = 0;
    if (const std::size_t plus = text.find('+'); plus != std::string_view::npos) {
        offset = literal(trimmed(text.substr(plus + 1)), Type::b64).value_or(0);
        text = trimmed(text.substr(0, plus));
    }
    Symbol other;
    const Symbol& s = symbol(text, other);
    if (!s.is_register) return constant(s.address + offset, bytes);
    if (width != nullptr) *width = static_cast<std::uint8_t>(size_of(s.type));
    else if (size_of(s.type) != bytes)
        stop("expected a register of " + std::to_string(bytes) + " bytes, got '" +
             std::string(text) + "'");
    return s.slot;
}

Slot Translator::result(std::string_view text, std::uint8_t* width) {
    if (text == "_") {
        const std::size_t bytes = width != nullptr && *width != 0 ? *width : 8;
        if (width != nullptr) *width = static_cast<std::uint8_t>(bytes);
        return new_slot(bytes);
    }
    Symbol other;
    const Symbol& s = symbol(text, other);
    if (!s.is_register) stop("expected a register, got '" + std::string(text) + "'");
    if (width != nullptr) *width = static_cast<std::uint8_t>(size_of(s.type));
    return s.slot;
}

void Translator::address(std::string_view text, Instruction& in) {
    if (text.size() < 3 || text.front() != '[') stop("expected an address");
    text = trimmed(text.substr(1, text.size() - 2));
    if (const std::size_t sign = text.find_first_of("+-", 1); sign != std::string_view::npos) {
        std::string_view offset = trimmed(text.substr(sign + 1));
        const bool negative = text[sign] == '-';
        const auto value = static_cast<std::int64_t>(literal(offset, Type::b64).value_or(0));
        in.offset = negative ? -value : value;
        text = trimmed(text.substr(0, sign));
    }
    in.at[4] = operand(text, Type::b64, &in.wide[1]);
}

void Translator::body(Frame& frame, const Declared& function) {
    if (++depth_ > 20) refuse(function.line, "functions call each other too deeply");
    Frame* const caller = frame_;
    frame_ = &frame;
    frame.scopes.emplace_back();
    Reader reader(function.body, function.line);
    while (!reader.at_end()) {
        if (reader.take('{')) {
            frame.scopes.emplace_back();
            frame.blocks.push_back(++frame.n_blocks);
            continue;
        }
        if (reader.take('}')) {
            frame.scopes.pop_back();
            frame.blocks.pop_back();
            continue;
        }
        predicate_ = no_slot;
        negated_ = false;
        line_ = reader.line();
        std::string_view word = reader.word();
        if (word.empty()) stop("expected a statement");
        if (word.back() == ':') {
            frame.labels[{frame.blocks.back(), word.substr(0, word.size() - 1)}] =
                static_cast<std::int32_t>(code_->instructions.size());
        } else if (word.front() == '.') {
            directive(word, reader);
        } else {
            const char* const begin = word.data();
            if (word.front() == '@') {
                negated_ = word.substr(1, 1) == "!";
                predicate_ = operand(word.substr(negated_ ? 2 : 1), Type::pred);
                word = reader.word();
            }
            const std::string_view operands = reader.until(';');
            const char* const end = operands.empty() ? word.end() : operands.end();
            text_ = {begin, static_cast<std::size_t>(end - begin)};
            instruction(word, operands);
        }
    }
    for (const Frame::Jump& jump : frame.jumps) {
        std::int32_t target =
            jump.label.empty() ? static_cast<std::int32_t>(code_->instructions.size()) : -1;
        for (auto block = jump.from.rbegin(); block != jump.from.rend() && target < 0; ++block)
            if (const auto found = frame.labels.find({*block, jump.label});
                found != frame.labels.end())
                target = found->second;
        if (target < 0)
            refuse(code_->origins[jump.at].line,
                   "there is no label '" + std::string(jump.label) + "'");
        code_->instructions[jump.at].target = target;
    }
    frame_ = caller;
    --depth_;
}

void Translator::directive(std::string_view word, Reader& reader) {
    if (word == ".loc") {
        // file line column, and for an inlined function the place of its call.
        const std::string text(reader.rest_of_line());
        source_ = caller_ = {};
        std::sscanf(text.c_str(), "%u %u", &source_.file, &source_.line);
        if (const std::size_t at = text.find("inlined_at"); at != std::string::npos)
            std::sscanf(text.c_str() + at + 10, "%u %u", &caller_.file, &caller_.line);
        return;
    }
    const std::string_view text = reader.until(';');
    if (word == ".pragma") return;
    Scope& scope = frame_->scopes.back();
    if (word == ".reg") {
        const std::size_t space = text.find_first_of(" \t");
        const Type type = type_named(text.substr(1, space - 1));
        if (type == Type::none) stop("unknown type of registers '" + std::string(text) + "'");
        for (std::string_view name : split(text.substr(space))) {
            Symbol s = {true, type};
            if (const std::size_t open = name.find('<'); open != std::string_view::npos) {
                s.count = std::strtoul(std::string(name.substr(open + 1)).c_str(), nullptr, 10);
                name = name.substr(0, open);
            }
            s.slot = new_slot(size_of(type), std::max<std::size_t>(s.count, 1));
            scope[name] = s;
        }
    } else if (word == ".shared" || word == ".local" || word == ".param") {
        const Declaration d = declaration(text, line_);
        const bool shared = word == ".shared";
        std::size_t& used = shared ? code_->shared_bytes : code_->local_bytes;
        used = (used + d.alignment - 1) / d.alignment * d.alignment;
        scope[d.name] = {false, d.type, no_slot, 0, shared ? used : local_window + used};
        used += d.bytes();
    } else {
        refuse(line_, "unknown directive '" + std::string(word) + "'");
    }
}

void Translator::call(const std::vector<std::string_view>& operands) {
    std::string_view results, name, arguments;
    for (const std::string_view o : operands)
        if (o.front() != '(') name = o;
        else (name.empty() ? results : arguments) = o.substr(1, o.size() - 2);
    const auto function = module_.functions.find(name);
    if (function == module_.functions.end()) stop("expected a function of the module");
    if (predicate_ != no_slot) stop("expected a call without a predicate");
    Frame frame;
    frame.inlined = true;
    frame.scopes.emplace_back();
    // The callee's parameters are the caller's variables under other names.
    const auto bind = [&](std::string_view formal, std::string_view actual) {
        const auto names = split(actual);
        std::size_t i = 0;
        for (const std::string_view text : split(formal)) {
            if (i == names.size()) stop("expected more arguments");
            Symbol other;
            frame.scopes.back()[declaration(text, function->second.line).name] =
                symbol(names[i++], other);
        }
    };
    bind(function->second.results, results);
    bind(function->second.parameters, arguments);
    const std::string_view text = text_;
    const Source source = source_, caller = caller_;
    body(frame, function->second);
    text_ = text;
    source_ = source;
    caller_ = caller;
}

void Translator::move(Type type, const std::vector<std::string_view>& operands) {
    const std::size_t bytes = size_of(type);
    const bool unpacks = operands[0].front() == '{';
    const std::string_view list = operands[unpacks ? 0 : 1];
    const auto parts = split(list.substr(1, list.size() - 2));
    Instruction in;
    in.count = static_cast<std::uint8_t>(parts.size());
    const std::size_t each = bytes / parts.size();
    const Type part = each == 1 ? Type::b8 : each == 2 ? Type::b16 : Type::b32;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        std::uint8_t width = static_cast<std::uint8_t>(each);
        in.at[i] = unpacks ? result(parts[i], &width) : operand(parts[i], part, &width);
        if (width != each) stop("expected registers of " + std::to_string(each) + " bytes");
    }
    in.at[4] = unpacks ? operand(operands[1], type) : result(operands[0]);
    in.wide[0] = static_cast<std::uint8_t>(each);
    in.wide[1] = static_cast<std::uint8_t>(bytes);
    in.run = entry(unpacks ? "unpack" : "pack").run;
    emit(in);
}

void Translator::memory(const std::vector<std::string_view>& name,
                        const std::vector<std::string_view>& operands) {
    Instruction in;
    Type type = Type::none;
    std::string operation;
    for (std::size_t i = 1; i < name.size(); ++i) {
        const std::string_view part = name[i];
        if (part == "global") in.space = Space::global;
        else if (part == "shared" || part == "shared::cta") in.space = Space::shared;
        else if (part == "local") in.space = Space::local;
        else if (part == "param" || part == "param::entry" || part == "param::func")
            in.space = Space::param;
        else if (part == "const") in.space = Space::constant;
        else if (part == "v2" || part == "v4") in.count = part == "v2" ? 2 : 4;
        else if (const Type t = type_named(part); t != Type::none) type = t;
        else if (name[0] == "atom" || name[0] == "red") {
            if (part != "relaxed" && part != "gpu" && part != "cta" && part != "sys" &&
                part != "acq_rel" && part != "acquire" && part != "release" && part != "noftz")
                operation = "." + std::string(part);
        }
    }
    if (type == Type::none) stop("expected a type");
    const std::string suffix(name.back());
    const bool atomic = name[0] == "atom" || name[0] == "red";
    const bool loads = name[0] == "ld" || name[0] == "ldu";
    const std::size_t place = loads || name[0] == "atom" ? 1 : 0;
    if (operands.size() < 2) stop("expected operands");
    address(operands[place], in);
    in.bytes = static_cast<std::uint8_t>(size_of(type) * in.count);
    in.writes = !loads;
    if (atomic) {
        const Entry& e = entry("atom" + operation + "." + suffix);
        in.run = e.run;
        std::uint8_t width = static_cast<std::uint8_t>(size_of(type));
        in.at[0] = place == 1 ? result(operands[0], &width) : new_slot(size_of(type));
        for (std::size_t i = place + 1; i < operands.size(); ++i)
            in.at[i - place] = operand(operands[i], type);
    } else {
        in.run = entry((loads ? "ld." : "st.") + suffix).run;
        std::string_view list = operands[1 - place];
        if (list.front() == '{') list = list.substr(1, list.size() - 2);
        const auto parts = split(list);
        if (parts.size() != in.count) stop("expected " + std::to_string(in.count) + " registers");
        for (std::size_t i = 0; i < parts.size(); ++i) {
            in.wide[0] = static_cast<std::uint8_t>(size_of(type));
            in.at[i] = loads ? result(parts[i], &in.wide[0]) : operand(parts[i], type, &in.wide[0]);
            if (in.wide[0] < size_of(type)) stop("expected wider registers");
        }
    }
    emit(in);
}

void Translator::convert(const std::vector<std::string_view>& name,
                         const std::vector<std::string_view>& operands) {
    Instruction in;
    std::vector<std::string> types;
    for (std::size_t i = 1; i < name.size(); ++i) {
        const std::string_view part = name[i];
        const std::size_t mode =
            std::string_view("rn rz rm rp ").find(std::string(part.substr(0, 2)) + " ");
        if (type_named(part) != Type::none) types.emplace_back(part);
        else if (part == "sat") in.target |= saturate;
        else if (part == "ftz") in.target |= flush;
        else if (mode != std::string_view::npos && part.size() <= 3)
            in.target |= static_cast<std::int32_t>(mode / 3) | (part.size() == 3 ? to_integer : 0);
        else stop("unknown modifier '." + std::string(part) + "'");
    }
    if (types.size() != 2 || operands.size() != 2) stop("expected two types and two operands");
    const Entry& e = entry("cvt." + types[0] + "." + types[1]);
    in.run = e.run;
    in.wide[0] = static_cast<std::uint8_t>(size_of(e.types[0]));
    in.at[0] = result(operands[0], &in.wide[0]);
    in.at[1] = operand(operands[1], e.types[1], &in.wide[1]);
    if (in.wide[0] < size_of(e.types[0]) || in.wide[1] < size_of(e.types[1]))
        stop("expected wider registers");
    emit(in);
}

void Translator::compare(const std::vector<std::string_view>& name,
                         const std::vector<std::string_view>& operands) {
    Instruction in;
    std::string plain = "setp";
    for (std::size_t i = 1; i < name.size(); ++i) {
        if (name[i] == "and") in.target |= combine_and;
        else if (name[i] == "or") in.target |= combine_or;
        else if (name[i] == "xor") in.target |= combine_xor;
        else plain += "." + std::string(name[i]);
    }
    const Entry& e = entry(plain);
    in.run = e.run;
    const std::size_t bar = operands[0].find('|');
    in.at[0] = result(trimmed(operands[0].substr(0, bar)));
    if (bar != std::string_view::npos) {
        in.target |= second_result;
        in.at[3] = result(trimmed(operands[0].substr(bar + 1)));
    }
    in.at[1] = operand(operands[1], e.types[1]);
    in.at[2] = operand(operands[2], e.types[2]);
    if ((in.target & combine_mask) != 0) {
        if (operands.size() != 4) stop("expected a predicate");
        const bool inverted = operands[3].front() == '!';
        if (inverted) in.target |= combine_not;
        in.at[4] = operand(trimmed(operands[3].substr(inverted ? 1 : 0)), Type::pred);
    }
    emit(in);
}

void Translator::by_table(const std::string& name, const std::vector<std::string_view>& operands) {
    const Entry& e = entry(name);
    if (operands.size() != e.types.size())
        stop("expected " + std::to_string(e.types.size()) + " operands");
    Instruction in;
    in.run = e.run;
    for (std::size_t i = 0; i < operands.size(); ++i) {
        std::uint8_t width = static_cast<std::uint8_t>(size_of(e.types[i]));
        in.at[i] = i == 0 ? result(operands[i], &width) : operand(operands[i], e.types[i]);
        if (i == 0 && width != size_of(e.types[0])) stop("expected a result of another width");
    }
    if (name.find(".cc") != std::string::npos || name.find("addc") == 0 || name.find("subc") == 0 ||
        name.find("madc") == 0) {
        if (code_->carry == no_slot) code_->carry = new_slot(1);
        in.at[4] = code_->carry;
    }
    emit(in);
}

void Translator::instruction(std::string_view op, std::string_view text) {
    const auto name = split_name(op);
    const auto operands = split(text);
    const auto is = [&](std::string_view word) { return name[0] == word; };
    const auto has = [&](std::string_view word) {
        return std::find(name.begin(), name.end(), word) != name.end();
    };
    Instruction in;
    if (is("bra")) {
        in.control = Control::branch;
        frame_->jumps.push_back({code_->instructions.size(), operands.at(0), frame_->blocks});
        emit(in);
    } else if (is("ret") && frame_->inlined) {
        in.control = Control::branch;
        frame_->jumps.push_back({code_->instructions.size(), {}, {}});
        emit(in);
    } else if (is("ret") || is("exit")) {
        in.control = Control::exit;
        emit(in);
    } else if (is("call")) {
        call(operands);
    } else if (is("trap")) {
        in.run = entry("trap").run;
        emit(in);
    } else if ((is("bar") || is("barrier")) && !has("warp")) {
        if (!has("sync") || operands.size() != 1 || literal(operands[0], Type::b32) != 0)
            stop("expected barrier 0 of all threads");
        in.control = Control::barrier;
        emit(in);
    } else if (is("membar") || is("fence")) {
        // Accesses are executed one after the other.
    } else if (is("shfl") || is("vote") || is("bar") || is("match") || is("redux") ||
               is("activemask")) {
        // Result, second result, value, two further operands, mask.
        std::string plain(op);
        const Entry& e = entry(plain);
        in.run = e.run;
        in.control = is("activemask") ? Control::none : Control::warp;
        std::size_t next = 0;
        if (!is("bar")) {
            const std::string_view first = operands.at(next++);
            const std::size_t bar = first.find('|');
            in.at[0] = result(trimmed(first.substr(0, bar)));
            if (bar != std::string_view::npos) {
                in.target |= second_result;
                in.at[1] = result(trimmed(first.substr(bar + 1)));
            }
        }
        for (std::size_t i = 1; i < e.types.size(); ++i) {
            std::string_view o = operands.at(next++);
            if (o.front() == '!') {
                in.target |= combine_not;
                o = trimmed(o.substr(1));
            }
            const bool is_mask = i + 1 == e.types.size();
            (is_mask ? in.at[5] : in.at[i + 1]) = operand(o, e.types[i]);
        }
        emit(in);
    } else if (is("ld") || is("ldu") || is("st") || is("atom") || is("red")) {
        memory(name, operands);
    } else if (is("cvt")) {
        convert(name, operands);
    } else if (is("setp")) {
        compare(name, operands);
    } else if (is("cvta")) {
        // Shared memory has offsets, all other addresses are generic.
        const bool shared = has("shared");
        const std::string plain = !shared     ? "mov.b64"
                                  : has("to") ? "cvta.to.shared"
                                              : "cvta.shared";
        by_table(plain, operands);
    } else if (is("mov") && operands.size() == 2 &&
               (operands[0].front() == '{' || operands[1].front() == '{')) {
        move(type_named(name.back()), operands);
    } else {
        by_table(std::string(op), operands);
    }
}

}  // namespace

std::shared_ptr<Code> translate(const Module::Parsed& module, const Declared& kernel) {
    return Translator(module, kernel).code();
}

}  // namespace catena_machine
