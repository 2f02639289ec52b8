// catena-predict: runs trained nets.
#include "about.hpp"
#include "options.hpp"
#include "tasks.hpp"

#include <catena/core/device.hpp>

#include <fmt/format.h>

using namespace catena;

namespace {

// Refuses options that do not apply to this kind of net.
void require_fitting(const Program& program, bool images) {
    for (const char* option : {"input", "labels"}) {
        if (!images && program.given(option))
            throw boost::program_options::error(
                fmt::format("--{}: expected a net for images, got one for words", option));
    }
    for (const char* option : {"prompt", "length", "temperature"}) {
        if (images && program.given(option))
            throw boost::program_options::error(
                fmt::format("--{}: expected a net for words, got one for images", option));
    }
}

}  // namespace

int main(int argc, char** argv) {
    return run_program("catena-predict", [&] {
        Program program(
            "catena-predict",
            "Classifies images, generates text or finds similar words with a net from a "
            "snapshot.");
        Options options;
        if (!parse_options(program, argc, argv, options)) return 0;
        const Device device = program.start();
        const using_device scope(device);
        const About about(options.model);
        const std::string net = about.text("about/net");
        const bool images = net != "language model" && net != "word vectors";
        require_fitting(program, images);
        if (images) classify(program, options, about, device);
        else if (net == "language model") continue_text(program, options, about, device);
        else find_nearest(program, options, about);
        return program.finish();
    });
}
