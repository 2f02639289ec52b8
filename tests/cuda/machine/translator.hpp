// Translates the text of a kernel into instructions: registers become slots, labels become numbers, and
// the bodies of called functions are inserted at each call, which PTX allows because calls are direct.
#pragma once

#include <map>

#include "ptx.hpp"

namespace catena_machine {

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

class Translator {
public:
    Translator(const Module::Parsed& module, const Declared& kernel);
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
    // Removes "+number" from the text of an address and returns the number, else 0.
    std::uint64_t take_offset(std::string_view& text) const;
    void expect(std::size_t n, const std::vector<std::string_view>& operands) const {
        if (operands.size() != n) stop("expected " + std::to_string(n) + " operands");
    }
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

}  // namespace catena_machine
