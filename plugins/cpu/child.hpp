// A program run to its end.
#pragma once

#include <string>
#include <vector>

namespace catena_cpu {

struct Outcome {
    bool started = false;
    int status = -1;     // of the exit; 128 + signal if one ended it
    std::string output;  // what it wrote to stdout and stderr
};

// [any] arguments[0] is the program's path. It gets no input and the environment of this process.
Outcome run_program(const std::vector<std::string>& arguments);

// The path of a program: itself if it has a '/', else the first in $PATH. "" if there is none.
std::string find_program(const std::string& name);

}  // namespace catena_cpu
