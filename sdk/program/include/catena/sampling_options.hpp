// SamplingOptions: the options --temperature, --top-k and --top-p of programs that generate text.
#pragma once

#include <catena/program/options.hpp>
#include <catena/sampling.hpp>

namespace catena {

struct SamplingOptions : Sampling {
    static constexpr const char* names[] = {"temperature", "top-k", "top-p"};

    // Adds the options, before parse().
    void add_to(ProgramOptions& options);
    // Call it after parse(). Throws boost::program_options::error for invalid values.
    void check(const ProgramOptions& options) const;
};

}  // namespace catena
