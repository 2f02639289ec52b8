// Kernels in the form that the machine executes.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "machine.hpp"

namespace catena_machine {

// Types of operands, as PTX names them.
enum class Type : std::uint8_t {
    pred,
    b8,
    b16,
    b32,
    b64,
    u8,
    u16,
    u32,
    u64,
    s8,
    s16,
    s32,
    s64,
    f16,
    bf16,
    f32,
    f64,
    none
};
// Bytes of a value in a register or in memory; a predicate has one.
std::size_t size_of(Type type);
bool is_float(Type type);
// Returns Type::none if the text is not a type.
Type type_named(std::string_view text);
std::string_view name_of(Type type);

struct Warp;
struct Instruction;
using Handler = void (*)(Warp& warp, const Instruction& in);

// What the main loop of a warp has to do for an instruction.
enum class Control : std::uint8_t { none, branch, exit, barrier, warp };
enum class Space : std::uint8_t { generic, global, shared, local, param, constant };

// A place of 32 values of one operand: twice the offset among the registers of the warp, or twice the
// offset among the constants of the kernel plus one.
using Slot = std::int32_t;
constexpr Slot no_slot = -1;

struct Instruction {
    Handler run = nullptr;
    std::array<Slot, 6> at = {no_slot, no_slot, no_slot,
                              no_slot, no_slot, no_slot};  // results first
    Slot predicate = no_slot;
    std::int32_t target = 0;  // of a branch; bits of flags for other instructions
    std::int64_t offset = 0;  // added to the address
    Control control = Control::none;
    Space space = Space::generic;
    bool negated = false;           // the predicate
    std::uint8_t count = 1;         // elements of a vector
    std::uint8_t wide[2] = {0, 0};  // bytes of the registers of the result and of the first operand
    std::uint8_t bytes = 0;         // that are accessed in memory
    bool writes = false;            // to memory
};

// Flags of Instruction::target.
enum : std::int32_t {
    round_nearest = 0,
    round_zero = 1,
    round_down = 2,
    round_up = 3,
    round_mask = 3,
    to_integer = 4,
    saturate = 8,
    flush = 16,
    combine_and = 32,
    combine_or = 64,
    combine_xor = 96,
    combine_mask = 96,
    combine_not = 128,
    second_result = 256,
};

// Values that a warp finds in registers when it begins.
enum class Special : std::uint8_t {
    tid_x,
    tid_y,
    tid_z,
    ntid_x,
    ntid_y,
    ntid_z,
    ctaid_x,
    ctaid_y,
    ctaid_z,
    nctaid_x,
    nctaid_y,
    nctaid_z,
    laneid,
    warpid,
    nwarpid,
    dynamic_smem,
    total_smem,
    lanemask_eq,
    lanemask_le,
    lanemask_lt,
    lanemask_ge,
    lanemask_gt
};

// A line of a source file; file 0: unknown.
struct Source {
    std::uint32_t file = 0, line = 0;
};
// Where an instruction comes from.
struct Origin {
    std::string_view text;
    std::uint32_t line = 0;  // of the PTX
    Source source, caller;   // caller: of the function, if it was inlined
};

struct Code {
    std::string name;
    std::vector<Parameter> parameters;
    std::size_t argument_bytes = 0;
    std::size_t maximum_threads = 1024;
    std::vector<Instruction> instructions;
    std::vector<Origin> origins;
    std::shared_ptr<const std::vector<std::string>> files;
    std::vector<unsigned char> constants;  // 32 values each
    std::size_t register_bytes = 0;
    std::size_t shared_bytes = 0;
    std::size_t local_bytes = 0;  // of each thread
    std::vector<std::pair<Slot, Special>> specials;
    Slot carry = no_slot;
    std::vector<Region> variables;  // of the module, in its memory
};

// Which handler executes an instruction, and the types of its operands.
struct Entry {
    Handler run = nullptr;
    std::vector<Type> types;
};
// Finds an instruction by its name, such as "fma.rn.f32"; nullptr: unknown.
const Entry* find_entry(const std::string& name);

// Kept here for handlers of each instruction set, which fill it. `$` in the name stands for the type.
class Table {
public:
    virtual void add(const char* name, Type type, Handler run,
                     std::initializer_list<Type> types) = 0;

protected:
    ~Table() = default;
};
namespace baseline {
void fill(Table& table);
}
namespace avx2 {
void fill(Table& table);
}

// The parts of a name: "add.rn.f32" is {"add", "rn", "f32"}.
std::vector<std::string_view> split_name(std::string_view name);

// The declarations of a module.
struct Declared {
    std::string_view name;
    std::string_view results, parameters, body;  // between parentheses and braces
    std::uint32_t line = 0;                      // at which the body begins
    std::size_t maximum_threads = 1024;
    bool is_kernel = false;
};
struct Variable {
    Space space;
    std::size_t offset = 0;  // in the memory of the module, or in shared memory
    std::size_t bytes = 0, alignment = 1;
    bool is_dynamic = false;  // extern .shared
};

// Throws std::runtime_error with the line.
[[noreturn]] void refuse(std::uint32_t line, const std::string& why);

}  // namespace catena_machine
