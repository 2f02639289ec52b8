// Translates instructions, each from its name and operands.
#include <algorithm>

#include "translator.hpp"

namespace catena_machine {

void Translator::move(Type type, const std::vector<std::string_view>& operands) {
    const std::size_t bytes = size_of(type);
    const bool unpacks = operands[0].front() == '{';
    const std::string_view list = operands[unpacks ? 0 : 1];
    const auto parts = split(list.substr(1, list.size() - 2));
    const bool fits = parts.size() == 2 || (parts.size() == 4 && bytes >= 4);
    if (!fits || type < Type::b16 || type > Type::b64) stop("expected 2 or 4 parts of bits");
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

// Whether a modifier of an access changes no result, as accesses are executed one after the other.
static bool is_order(std::string_view instruction, std::string_view modifier) {
    constexpr std::string_view scopes = " cta cluster gpu sys ";
    constexpr std::string_view common =
        " weak volatile mmio L1::evict_normal L1::evict_unchanged L1::evict_first L1::evict_last "
        "L1::no_allocate ";
    const auto in = [&](std::string_view words) {
        return words.find(" " + std::string(modifier) + " ") != std::string_view::npos;
    };
    if (instruction == "ldu") return false;
    if (in(scopes) || modifier == "relaxed") return true;
    if (instruction == "ld")
        return in(common) || in(" acquire nc ca cg cs lu cv L2::64B L2::128B L2::256B ");
    if (instruction == "st") return in(common) || in(" release wb cg cs wt ");
    return modifier == "release" || (instruction == "atom" && in(" acquire acq_rel "));
}

void Translator::memory(const std::vector<std::string_view>& name,
                        const std::vector<std::string_view>& operands) {
    Instruction in;
    Type type = Type::none;
    const bool atomic = name[0] == "atom" || name[0] == "red";
    const bool loads = name[0] == "ld" || name[0] == "ldu";
    std::string operation;
    for (std::size_t i = 1; i < name.size(); ++i) {
        const std::string_view part = name[i];
        const Space space =
            part == "global"                            ? Space::global
            : part == "shared" || part == "shared::cta" ? Space::shared
            : part == "local" && !atomic                ? Space::local
            : part == "const" && loads                  ? Space::constant
            : (part == "param" || part == "param::entry" || part == "param::func") && !atomic
                ? Space::param
                : Space::generic;
        if (space != Space::generic && in.space == Space::generic) in.space = space;
        else if (!atomic && in.count == 1 && (part == "v2" || part == "v4"))
            in.count = part == "v2" ? 2 : 4;
        else if (type == Type::none && type_named(part) != Type::none) type = type_named(part);
        else if (atomic && operation.empty() && !is_order(name[0], part)) operation = part;
        else if (!is_order(name[0], part)) stop("unknown modifier '." + std::string(part) + "'");
    }
    if (type == Type::none) stop("expected a type");
    const std::string suffix(name_of(type));
    const std::size_t place = loads || name[0] == "atom" ? 1 : 0;
    if (!atomic) expect(2, operands);
    if (operands.size() < 2) stop("expected operands");
    address(operands[place], in);
    in.bytes = static_cast<std::uint8_t>(size_of(type) * in.count);
    in.writes = !loads;
    if (atomic) {
        const Entry& e = entry(std::string(name[0]) + "." + operation + "." + suffix);
        expect(place + e.types.size(), operands);
        in.run = e.run;
        std::uint8_t width = static_cast<std::uint8_t>(size_of(type));
        in.at[0] = place == 1 ? result(operands[0], &width) : new_slot(size_of(type));
        if (width != size_of(type)) stop("expected a result of another width");
        for (std::size_t i = 1; i < e.types.size(); ++i)
            in.at[i] = operand(operands[i + place], type);
    } else {
        in.run = entry((loads ? "ld." : "st.") + suffix).run;
        std::string_view list = operands[1 - place];
        if (list.front() == '{') list = list.substr(1, list.size() - 2);
        const auto parts = split(list);
        if (parts.size() != in.count) stop("expected " + std::to_string(in.count) + " registers");
        for (std::size_t i = 0; i < parts.size(); ++i) {
            std::uint8_t width = static_cast<std::uint8_t>(size_of(type));
            if (parts[i] == "_") {
                in.at[i] = new_slot(8);
                continue;
            }
            in.at[i] = loads ? result(parts[i], &width) : operand(parts[i], type, &width);
            if (width < size_of(type)) stop("expected wider registers");
            if (in.wide[0] != 0 && in.wide[0] != width) stop("expected registers of one width");
            in.wide[0] = width;
        }
        if (in.wide[0] == 0) stop("expected a register");
    }
    emit(in);
}

void Translator::convert(const std::vector<std::string_view>& name,
                         const std::vector<std::string_view>& operands) {
    Instruction in;
    std::vector<std::string> types;
    bool rounds = false;
    for (std::size_t i = 1; i < name.size(); ++i) {
        const std::string_view part = name[i];
        const std::size_t mode =
            std::string_view("rn rz rm rp ").find(std::string(part.substr(0, 2)) + " ");
        if (type_named(part) != Type::none) types.emplace_back(part);
        else if (part == "sat") in.target |= saturate;
        else if (part == "ftz") in.target |= flush;
        else if (mode != std::string_view::npos && mode % 3 == 0 && !rounds &&
                 (part.size() == 2 || part.substr(2) == "i")) {
            in.target |= static_cast<std::int32_t>(mode / 3) | (part.size() == 3 ? to_integer : 0);
            rounds = true;
        } else stop("unknown modifier '." + std::string(part) + "'");
    }
    expect(2, operands);
    if (types.size() != 2) stop("expected two types");
    const Entry& e = entry("cvt." + types[0] + "." + types[1]);
    const Type to = e.types[0], from = e.types[1];
    if ((in.target & flush) != 0 && to != Type::f32 && from != Type::f32)
        stop("expected f32, to which .ftz applies");
    // .rni and the like give whole numbers; .rn and the like belong where bits may be lost. Between floats
    // NVIDIA's assembler accepts both for operands of 16 bits.
    const bool floats = is_float(to) && is_float(from), whole = (in.target & to_integer) != 0;
    const bool inexact = floats ? size_of(to) < size_of(from) : is_float(to);
    const bool fits = whole    ? is_float(from) && (!is_float(to) || to == from)
                      : rounds ? inexact
                               : !inexact && is_float(to) == is_float(from);
    if (!fits && !(floats && size_of(from) == 2)) stop("expected another rounding");
    in.run = e.run;
    in.wide[0] = static_cast<std::uint8_t>(size_of(to));
    in.at[0] = result(operands[0], &in.wide[0]);
    in.at[1] = operand(operands[1], from, &in.wide[1]);
    if (in.wide[0] < size_of(to) || in.wide[1] < size_of(from)) stop("expected wider registers");
    emit(in);
}

void Translator::compare(const std::vector<std::string_view>& name,
                         const std::vector<std::string_view>& operands) {
    Instruction in;
    std::string plain = "setp";
    for (std::size_t i = 1; i < name.size(); ++i) {
        const int combine = name[i] == "and"   ? combine_and
                            : name[i] == "or"  ? combine_or
                            : name[i] == "xor" ? combine_xor
                                               : 0;
        if (combine == 0 || in.target != 0) plain += "." + std::string(name[i]);
        else in.target = combine;
    }
    const Entry& e = entry(plain);
    expect(in.target != 0 ? 4 : 3, operands);
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
    if (op == "bra" || op == "bra.uni") {
        expect(1, operands);
        in.control = Control::branch;
        frame_->jumps.push_back({code_->instructions.size(), operands[0], frame_->blocks});
        emit(in);
    } else if (op == "ret" || op == "ret.uni" || op == "exit") {
        expect(0, operands);
        const bool returns = op != "exit" && frame_->inlined;
        in.control = returns ? Control::branch : Control::exit;
        if (returns) frame_->jumps.push_back({code_->instructions.size(), {}, {}});
        emit(in);
    } else if (op == "call" || op == "call.uni") {
        call(operands);
    } else if (op == "trap") {
        expect(0, operands);
        in.run = entry("trap").run;
        emit(in);
    } else if ((is("bar") || is("barrier")) && !has("warp")) {
        for (std::size_t i = 1; i < name.size(); ++i)
            if (name[i] != "sync" && name[i] != "cta" && (name[i] != "aligned" || is("bar")))
                stop("unknown modifier '." + std::string(name[i]) + "'");
        if (!has("sync") || operands.size() != 1 || literal(operands[0], Type::b32) != 0)
            stop("expected barrier 0 of all threads");
        in.control = Control::barrier;
        emit(in);
    } else if (is("membar") || is("fence")) {
        // Accesses are executed one after the other.
        expect(0, operands);
        for (std::size_t i = 1; i < name.size() || i == 1; ++i)
            if (const std::string known =
                    is("membar") ? " cta gl sys " : " acq_rel sc cta cluster gpu sys ";
                i == name.size() ||
                known.find(" " + std::string(name[i]) + " ") == std::string::npos)
                stop("expected another scope");
    } else if (is("shfl") || is("vote") || is("bar") || is("match") || is("redux") ||
               is("activemask")) {
        // Result, second result, value, two further operands, mask.
        const Entry& e = entry(std::string(op));
        expect(is("bar") ? e.types.size() - 1 : e.types.size(), operands);
        in.run = e.run;
        in.control = is("activemask") ? Control::none : Control::warp;
        std::size_t next = 0;
        if (!is("bar")) {
            const std::string_view first = operands[next++];
            const std::size_t bar = first.find('|');
            in.at[0] = result(trimmed(first.substr(0, bar)));
            if (bar != std::string_view::npos) {
                in.target |= second_result;
                in.at[1] = result(trimmed(first.substr(bar + 1)));
            }
        }
        for (std::size_t i = 1; i < e.types.size(); ++i) {
            std::string_view o = operands[next++];
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
        const std::string to = has("to") ? "to." : "";
        std::string_view space = op.substr(std::min(5 + to.size(), op.size()));
        if (space == "shared::cta.u64") space = "shared.u64";
        const bool generic = space == "global.u64" || space == "local.u64" ||
                             space == "const.u64" || space == "param.u64";
        by_table(generic ? "mov.b64" : "cvta." + to + std::string(space), operands);
    } else if (is("mov") && operands.size() == 2 &&
               (operands[0].front() == '{' || operands[1].front() == '{')) {
        move(type_named(name.back()), operands);
    } else {
        by_table(std::string(op), operands);
    }
}
}  // namespace catena_machine
