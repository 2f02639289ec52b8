// NVRTC's interface over the system's C++ compiler: it compiles a source to a shared library, which
// the emulator's cudaLibraryLoadData() accepts instead of a cubin. It contains the kernels that are
// extern "C".
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern char** environ;

namespace {

enum Result { success = 0, out_of_memory = 1, invalid_program = 4, compilation = 6 };

struct Program {
    std::string source, name, log, binary;
    std::vector<std::pair<std::string, std::string>> headers;  // name, text
};

std::string read_file(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

// Returns the word that begins at `at`; empty if there is none.
std::string word_at(const std::string& text, std::size_t at) {
    std::size_t end = at;
    while (end < text.size() &&
           (std::isalnum(static_cast<unsigned char>(text[end])) != 0 || text[end] == '_'))
        ++end;
    return text.substr(at, end - at);
}

// Returns the names of the extern "C" kernels. Between extern "C" and the name there are CUDA's
// keywords, void, and possibly launch bounds in parentheses.
std::vector<std::string> c_kernels(const std::string& source) {
    std::vector<std::string> names;
    const std::string mark = "extern \"C\"";
    for (std::size_t at = source.find(mark); at != std::string::npos; at = source.find(mark, at)) {
        at += mark.size();
        bool global = false;
        std::string last;
        while (at < source.size() && source[at] != '{' && source[at] != ';') {
            if (const std::string word = word_at(source, at); !word.empty()) {
                global = global || word == "__global__";
                last = word;
                at += word.size();
            } else if (source[at] == '(' && last != "__launch_bounds__") {
                break;
            } else {
                at = source[at] == '(' ? source.find(')', at) : at;
                ++at;
            }
        }
        if (global) names.push_back(last);
    }
    return names;
}

// Returns the source followed by the table in which the emulator looks up kernels.
std::string with_table(const Program& program) {
    std::string text =
        "#include <cuda_runtime.h>\n#line 1 \"" + program.name + "\"\n" + program.source + "\n";
    text +=
        "namespace catena_emulator { namespace {\n"
        "template <auto kernel>\n"
        "cudaError_t start(const cudaLaunchConfig_t& config, void** args) {\n"
        "return launch_pointers(config, kernel, args); }\n"
        "} }\n"
        "extern \"C\" __attribute__((visibility(\"default\")))\n"
        "const catena_emulator::KernelEntry catena_emulator_kernels[] = {\n";
    for (const std::string& kernel : c_kernels(program.source))
        text += "{\"" + kernel + "\", &catena_emulator::start<&" + kernel + ">},\n";
    return text + "{nullptr, nullptr}};\n";
}

int run(const std::vector<std::string>& command, const std::string& input,
        const std::string& output) {
    std::vector<char*> args;
    for (const std::string& word : command) args.push_back(const_cast<char*>(word.c_str()));
    args.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, input.c_str(), 0 /* read */, 0);
    posix_spawn_file_actions_addopen(&actions, 2, output.c_str(), 0x241 /* write, create, empty */,
                                     0600);
    pid_t child = 0;
    int status = posix_spawnp(&child, args[0], &actions, nullptr, args.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (status != 0) return status;
    while (waitpid(child, &status, 0) < 0) continue;
    return status;
}

Result compile(Program& program, int n, const char* const* options) {
    char pattern[] = "/tmp/catena-emulated-nvrtc-XXXXXX";
    if (mkdtemp(pattern) == nullptr) return out_of_memory;
    const std::filesystem::path folder = pattern;
    std::ofstream(folder / "kernel.cpp") << with_table(program);
    for (const auto& [name, text] : program.headers) {
        std::filesystem::create_directories((folder / name).parent_path());
        std::ofstream(folder / name) << text;
    }
    std::vector<std::string> command = {
        EMULATED_COMPILER,     "-std=c++20",          "-O1", "-w", "-fPIC", "-shared",
        "-fvisibility=hidden", "-DCATENA_CUDA=1",
        "-I" EMULATED_HEADERS,  // has precompiled headers, so it is first
        "-I" EMULATED_INCLUDE, "-I" + folder.string()};
    std::string flags = EMULATED_FLAGS;
    for (std::size_t at = 0; at < flags.size();) {
        const std::size_t end = std::min(flags.find(' ', at), flags.size());
        if (end > at) command.push_back(flags.substr(at, end - at));
        at = end + 1;
    }
    for (int i = 0; i < n; ++i) {  // other options concern the device
        const std::string option = options[i];
        for (const char* known : {"-D", "-I", "-U"})
            if (option.rfind(known, 0) == 0) command.push_back(option);
        if (option.rfind("--define-macro=", 0) == 0) command.push_back("-D" + option.substr(15));
        if (option.rfind("--include-path=", 0) == 0) command.push_back("-I" + option.substr(15));
    }
    command.emplace_back("-o");
    command.push_back((folder / "kernel.so").string());
    // From stdin: sanitizers put the source's name into the binary, which must be reproducible.
    for (const char* word : {"-x", "c++", "-", "-x", "none", EMULATED_RUNTIME})
        command.emplace_back(word);
    const int status = run(command, (folder / "kernel.cpp").string(), (folder / "log").string());
    program.log = read_file(folder / "log");
    if (status == 0) program.binary = read_file(folder / "kernel.so");
    std::filesystem::remove_all(folder);
    for (int i = 0; i < n; ++i)  // unlinked code is no cubin
        if (std::strcmp(options[i], "-dlto") == 0) program.binary.clear();
    return status == 0 ? success : compilation;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

int nvrtcVersion(int* major, int* minor) {
    *major = 13;
    *minor = 0;
    return success;
}
const char* nvrtcGetErrorString(int result) {
    return result == success       ? "NVRTC_SUCCESS"
           : result == compilation ? "NVRTC_ERROR_COMPILATION"
                                   : "NVRTC_ERROR_INVALID_INPUT";
}
int nvrtcGetNumSupportedArchs(int* n) {
    *n = 2;
    return success;
}
int nvrtcGetSupportedArchs(int* archs) {
    archs[0] = 80;
    archs[1] = 90;
    return success;
}

int nvrtcCreateProgram(Program** program, const char* source, const char* name, int n_headers,
                       const char* const* headers, const char* const* names) {
    *program = new Program;
    (*program)->source = source;
    (*program)->name = name != nullptr ? name : "default_program";
    for (int i = 0; i < n_headers; ++i) (*program)->headers.emplace_back(names[i], headers[i]);
    return success;
}
int nvrtcDestroyProgram(Program** program) {
    delete *program;
    *program = nullptr;
    return success;
}
int nvrtcCompileProgram(Program* program, int n, const char* const* options) {
    return program == nullptr ? invalid_program : compile(*program, n, options);
}
int nvrtcGetProgramLogSize(Program* program, std::size_t* bytes) {
    *bytes = program->log.size() + 1;
    return success;
}
int nvrtcGetProgramLog(Program* program, char* log) {
    std::memcpy(log, program->log.c_str(), program->log.size() + 1);
    return success;
}
int nvrtcGetCUBINSize(Program* program, std::size_t* bytes) {
    *bytes = program->binary.size();
    return success;
}
int nvrtcGetCUBIN(Program* program, char* binary) {
    std::memcpy(binary, program->binary.data(), program->binary.size());
    return success;
}
int nvrtcGetPTXSize(Program* program, std::size_t* bytes) {
    return nvrtcGetCUBINSize(program, bytes);
}
int nvrtcGetPTX(Program* program, char* binary) { return nvrtcGetCUBIN(program, binary); }
}
#pragma GCC visibility pop
