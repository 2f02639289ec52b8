// The tasks for each kind of net. They print their results, and throw DataError if the input does not fit.
#pragma once

#include "about.hpp"
#include "options.hpp"

#include <catena/core/device.hpp>

#include <cstdio>
#include <string>

// Prints a line to stderr. Errors are ignored, because the results are on stdout.
inline void tell(const std::string& line) { (void)std::fputs((line + "\n").c_str(), stderr); }

void classify(const catena::Program& program, const Options& options, const About& about,
              catena::Device device);
void continue_text(const catena::Program& program, const Options& options, const About& about,
                   catena::Device device);
void find_nearest(const catena::Program& program, const Options& options, const About& about);
