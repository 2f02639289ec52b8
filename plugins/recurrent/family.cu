// recurrent.cuda.catena, table of contents: layers with a memory.
#include "lstm.cuh"
#include "lstm_sequence.cuh"

using namespace catena::plugins;

CATENA_PLUGIN("org.catena.recurrent.cuda", "0.1.0", Lstm, LstmSequence);
