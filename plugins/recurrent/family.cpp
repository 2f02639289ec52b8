// recurrent.catena, table of contents: layers with a memory.
#include "lstm.hpp"
#include "lstm_sequence.hpp"

using namespace catena::plugins;

CATENA_PLUGIN("org.catena.recurrent", "0.1.0", Lstm, LstmSequence);
