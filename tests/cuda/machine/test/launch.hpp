// Launches kernels of a PTX text on memory of the test.
#pragma once

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "../machine.hpp"

// Vectors in messages of assertions.
template <class T>
struct doctest::StringMaker<std::vector<T>> {
    static String convert(const std::vector<T>& values) {
        std::ostringstream text;
        for (const auto& value : values) text << ' ' << std::hex << "0x" << +value;
        return text.str().c_str();
    }
};

namespace machine_test {

namespace machine = catena_machine;

inline const std::string header = ".version 9.0\n.target sm_90\n.address_size 64\n";

// Shows that a text is valid PTX, if the environment names NVIDIA's assembler.
inline void assemble(const std::string& ptx) {
    const char* const ptxas = std::getenv("CATENA_PTXAS");
    if (ptxas == nullptr) return;
    static int number = 0;
    const auto name =
        "catena-machine-" + std::to_string(getpid()) + "-" + std::to_string(++number) + ".ptx";
    const auto file = std::filesystem::temp_directory_path() / name;
    std::ofstream(file) << ptx;
    const auto command = std::string(ptxas) + " -arch=sm_90 '" + file.string() + "' -o /dev/null";
    CHECK_MESSAGE(std::system(command.c_str()) == 0, ptx);
    std::filesystem::remove(file);
}

// Memory of a kernel. Each byte has a state.
class Buffer {
public:
    Buffer() = default;
    template <class T>
    explicit Buffer(const std::vector<T>& values)
        : words_(values.size() * sizeof(T) / 8 + 1),
          bytes_(values.size() * sizeof(T)),
          states_(bytes_, machine::Byte::written) {
        std::memcpy(words_.data(), values.data(), bytes_);
    }
    // Memory that nobody wrote.
    static Buffer unwritten(std::size_t bytes) {
        Buffer made(std::vector<unsigned char>(bytes, 0xcd));
        made.states_.assign(bytes, machine::Byte::unwritten);
        return made;
    }
    template <class T>
    std::vector<T> get() const {
        std::vector<T> values(bytes_ / sizeof(T));
        std::memcpy(values.data(), words_.data(), values.size() * sizeof(T));
        return values;
    }
    std::vector<machine::Byte>& states() { return states_; }
    std::uintptr_t address() const { return reinterpret_cast<std::uintptr_t>(words_.data()); }
    machine::Region region() { return {address(), address() + bytes_, states_.data(), touched}; }
    machine::Touched* touched = nullptr;

private:
    std::vector<std::uint64_t> words_;
    std::size_t bytes_ = 0;
    std::vector<machine::Byte> states_;
};

struct Setup {
    machine::Extent grid = {1, 1, 1}, block = {32, 1, 1};
    std::size_t dynamic_shared_bytes = 0;
    int threads = 1;
    bool reversed = false;
    machine::Profile* profile = nullptr;
};

// Launches a kernel whose parameters are the addresses of the buffers, each 8 bytes.
inline machine::Fault launch(const machine::Kernel& kernel, const Setup& setup,
                             const std::vector<Buffer*>& buffers) {
    std::vector<std::byte> arguments(kernel.argument_bytes());
    REQUIRE(kernel.parameters().size() == buffers.size());
    machine::Launch launch;
    launch.kernel = &kernel;
    launch.grid = setup.grid;
    launch.block = setup.block;
    launch.dynamic_shared_bytes = setup.dynamic_shared_bytes;
    launch.threads = setup.threads;
    launch.reversed = setup.reversed;
    launch.profile = setup.profile;
    for (std::size_t i = 0; i < buffers.size(); ++i) {
        REQUIRE(kernel.parameters()[i].bytes == 8);
        const std::uint64_t address = buffers[i]->address();
        std::memcpy(arguments.data() + kernel.parameters()[i].offset, &address, 8);
        launch.regions.push_back(buffers[i]->region());
    }
    launch.arguments = arguments.data();
    return machine::run(launch);
}

inline machine::Fault launch(const std::string& ptx, const std::string& name, const Setup& setup,
                             const std::vector<Buffer*>& buffers) {
    assemble(ptx);
    const machine::Module module(ptx);
    const auto* kernel = module.find(name);
    REQUIRE(kernel != nullptr);
    return launch(*kernel, setup, buffers);
}

}  // namespace machine_test
