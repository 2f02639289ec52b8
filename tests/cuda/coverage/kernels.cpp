// Lists the kernels of CUDA modules, one line "module kernel" each, and writes their PTX.
//
// usage: cuda-kernels [--ptx FOLDER] MODULE...
#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "emulator/control.h"
#include "machine.hpp"

int main(int n, char** arguments) {
    std::filesystem::path folder;
    int first = 1;
    if (n > 2 && std::strcmp(arguments[1], "--ptx") == 0) {
        folder = arguments[2];
        first = 3;
    }
    int module = 0;
    for (int i = first; i < n; ++i) {
        const std::string name = std::filesystem::path(arguments[i]).stem().string();
        if (dlopen(arguments[i], RTLD_NOW | RTLD_LOCAL) == nullptr) {
            std::fprintf(stderr, "%s: %s\n", arguments[i], dlerror());
            return 1;
        }
        std::set<std::string> kernels;
        // A module has one text for each of its files.
        for (int part = 0; const char* ptx = catena_emulator_ptx(module); ++module, ++part) {
            for (std::string& kernel : catena_machine::Module(ptx).names()) kernels.insert(kernel);
            if (folder.empty()) continue;
            const std::string file = name + (part == 0 ? "" : "-" + std::to_string(part)) + ".ptx";
            std::ofstream(folder / file) << ptx;
        }
        for (const std::string& kernel : kernels) std::printf("%s %s\n", name.c_str(), kernel.c_str());
    }
    return 0;
}
