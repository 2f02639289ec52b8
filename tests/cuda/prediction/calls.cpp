// cuda-calls: runs calls of functions on the device "cuda", forward and backward, in all dtypes that
// they have.
//
// usage: cuda-calls FOLDER_OF_PLUGINS FILE
//   FILE has a line for each call, "catena.softmax x=(512,1000)", as examples of functions are written.
#include <catena/testing.hpp>
#include <catena/testing/sample.hpp>

#include <filesystem>
#include <fstream>
#include <iostream>

using namespace catena::testing;
namespace plugin = catena::plugin;

namespace {

std::vector<std::string> plugins(const std::string& folder) {
    std::vector<std::string> files;
    for (const auto& file : std::filesystem::directory_iterator(folder)) {
        const std::string name = file.path().filename();
        if (name.ends_with("cuda.catena") &&
            name != "cudnn.cuda.catena")  // it would take precedence
            files.push_back(file.path());
    }
    std::sort(files.begin(), files.end());
    return files;
}

void run(World& world, const std::string& name, const Sample& sample, const catena_dtype& dtype) {
    const catena_function& f = world.function(name);
    Options options;
    options.device = "cuda";
    Arrays x = sample.x;
    for (Array& a : x)
        if (a && a.floating()) a = a.to(dtype);
    const Attrs attrs = sample.example.attrs.list();
    const Arrays y = world.forward(name, x, attrs, options);
    if (world.kernels(name, CATENA_PHASE_BACKWARD).empty()) return;
    Arrays gy;
    for (std::size_t i = 0; i < f.n_outputs; ++i)
        gy.push_back((f.outputs[i]->flags & CATENA_PORT_HIDDEN) != 0 || !y[i].floating()
                         ? Array()
                         : Array::constant(y[i].shape(), y[i].dtype(), 0.5));
    world.backward(name, x, y, gy, attrs, options);
}

}  // namespace

int main(int argc, char** argv) try {
    if (argc != 3) throw std::invalid_argument("usage: cuda-calls FOLDER_OF_PLUGINS FILE");
    World world(plugins(argv[1]));
    std::ifstream file(argv[2]);
    for (std::string line; std::getline(file, line);) {
        if (line.empty() || line[0] == '#') continue;
        const std::string name = line.substr(0, line.find(' '));
        const catena_function& f = world.function(name);
        const Sample sample =
            make_sample(world, f, parse_example(f, line.substr(name.size() + 1)), 1);
        int dtypes = 0;
        for (const catena_dtype& dtype :
             {plugin::dtype_of<float>(), plugin::dtype_of<double>(),
              plugin::dtype_of<plugin::Float16>(), plugin::dtype_of<std::int32_t>(),
              plugin::dtype_of<std::int64_t>(), plugin::dtype_of<std::uint8_t>(),
              plugin::dtype_of<bool>()})
            try {
                run(world, name, sample, dtype);
                ++dtypes;
            } catch (const Failure&) {  // it has no kernel for this dtype
            }
        if (dtypes == 0) throw std::runtime_error(line + ": expected a dtype, got none");
        std::cout << line << std::endl;
    }
    if (!file.eof()) throw std::runtime_error(std::string(argv[2]) + ": expected a file of calls");
} catch (const std::exception& error) {
    std::cerr << "cuda-calls: " << error.what() << '\n';
    return 1;
}
