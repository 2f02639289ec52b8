// The other process of the tests, and blocks of bytes through a pipe.
#pragma once

#include <string>

// Answers what it is asked on its standard input until that ends. Returns the exit code.
int ipc_peer();

void ipc_send(int file, const std::string& bytes);
std::string ipc_receive(int file);  // "" at the end
