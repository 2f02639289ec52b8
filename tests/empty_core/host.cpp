// The smallest host: finds a function or a device by name, and prints the error if it fails.
#include <catena/core/device.hpp>
#include <catena/core/error.hpp>
#include <catena/core/plugin_function.hpp>

#include <cstdio>
#include <string_view>

int main(int argc, char** argv) {
    try {
        if (argc != 2) return 2;
        if (std::string_view(argv[1]) == "device") {
            std::puts(catena::Device::current().name().c_str());
        } else {
            std::puts(catena::PluginFunction(argv[1]).descriptor().name);
        }
    } catch (const catena::Error& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
    return 0;
}
