// What can be done with a snapshot, by the kind of its net. Each throws DataError for input that does not
// fit, and prints what it finds.
#pragma once

#include "about.hpp"
#include "options.hpp"

#include <catena/core/device.hpp>

#include <cstdio>
#include <string>

// A line to stderr. Results do not depend on whether it can be written.
inline void tell(const std::string& line) { (void)std::fputs((line + "\n").c_str(), stderr); }

void classify(const catena::Program& program, const Options& options, const About& about,
              catena::Device device);
void continue_text(const catena::Program& program, const Options& options, const About& about,
                   catena::Device device);
void find_nearest(const catena::Program& program, const Options& options, const About& about);
