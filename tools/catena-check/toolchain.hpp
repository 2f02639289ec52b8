// What compilers and their libraries put into a plugin by themselves: no fault of the author's.
#pragma once

#include <elf_image.hpp>

#include <cstdint>
#include <string>

namespace catena::check {

class Toolchain {
public:
    explicit Toolchain(const ElfImage& elf);

    // What a C++ library or a profiler inside the plugin needs of the system.
    bool imports(const std::string& name) const;
    // A function of this name that runs when the library is mapped.
    bool constructs(const std::string& name) const;
    // Libraries inside bring constructors, whose number nobody knows once names are stripped.
    bool countable() const { return !library_ && !profiler_ && !gpu_; }
    // libgcc's constructor for __builtin_cpu_supports(), also without its name.
    bool reads_cpu(std::uint64_t address) const;

private:
    const ElfImage& elf_;
    bool library_ = false, profiler_ = false, gpu_ = false;
};

}  // namespace catena::check
