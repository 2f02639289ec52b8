// catena-predict: uses what was trained.
#include "about.hpp"
#include "options.hpp"
#include "tasks.hpp"

#include <catena/core/device.hpp>

using namespace catena;

int main(int argc, char** argv) {
    return run_program("catena-predict", [&] {
        Program program(
            "catena-predict",
            "Classifies images, goes on with texts, or finds the nearest words, by a net "
            "from a snapshot.");
        Options options;
        if (!parse_options(program, argc, argv, options)) return 0;
        const Device device = program.start();
        const using_device scope(device);
        const About about(options.model);
        const std::string net = about.text("about/net");
        if (net == "language model") continue_text(program, options, about, device);
        else if (net == "word vectors") find_nearest(program, options, about);
        else classify(program, options, about, device);
        return program.finish();
    });
}
