// Translates the text around instructions: blocks, directives, operands and calls.
#include <algorithm>
#include <cstring>

#include "translator.hpp"

namespace catena_machine {
namespace {

constexpr std::string_view special_names[] = {
    "%tid.x",           "%tid.y",       "%tid.z",       "%ntid.x",
    "%ntid.y",          "%ntid.z",      "%ctaid.x",     "%ctaid.y",
    "%ctaid.z",         "%nctaid.x",    "%nctaid.y",    "%nctaid.z",
    "%laneid",          "%warpid",      "%nwarpid",     "%dynamic_smem_size",
    "%total_smem_size", "%lanemask_eq", "%lanemask_le", "%lanemask_lt",
    "%lanemask_ge",     "%lanemask_gt"};
}  // namespace

Translator::Translator(const Module::Parsed& module, const Declared& kernel) : module_(module) {
    code_->name = kernel.name;
    code_->files = module.files;
    code_->maximum_threads = kernel.maximum_threads;
    for (const auto& [name, v] : module.variables)
        if (v.space != Space::shared) {
            const auto begin = reinterpret_cast<std::uintptr_t>(module.memory.data()) + v.offset;
            code_->variables.push_back(
                {begin, begin + v.bytes, nullptr, module.touched.data() + v.offset / 4});
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

std::uint64_t Translator::take_offset(std::string_view& text) const {
    const std::size_t plus = text.find('+');
    if (plus == std::string_view::npos) return 0;
    const std::string_view number = trimmed(text.substr(plus + 1));
    const auto offset = literal(number, Type::u64);
    if (!offset) stop("expected a number after '+', got '" + std::string(number) + "'");
    text = trimmed(text.substr(0, plus));
    return *offset;
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
    const bool offset = text.find('+') != std::string_view::npos;
    const std::uint64_t added = take_offset(text);
    Symbol other;
    const Symbol& s = symbol(text, other);
    if (!s.is_register) return constant(s.address + added, bytes);
    if (offset) stop("expected a register without an offset");
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
    in.offset = static_cast<std::int64_t>(take_offset(text));
    in.at[4] = operand(text, Type::b64, &in.wide[1]);
    if (in.wide[1] < 4) stop("expected an address of 4 or 8 bytes");
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

std::shared_ptr<Code> translate(const Module::Parsed& module, const Declared& kernel) {
    return Translator(module, kernel).code();
}

}  // namespace catena_machine
