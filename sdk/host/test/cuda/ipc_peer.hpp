// The peer process of the IPC tests, and functions that send blocks of bytes through a pipe.
#pragma once

#include <string>

// Answers requests from standard input until its end. Returns the exit code.
int ipc_peer();

void ipc_send(int file, const std::string& bytes);
std::string ipc_receive(int file);  // "" at the end of the file
