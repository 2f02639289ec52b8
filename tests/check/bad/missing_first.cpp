// expect: nothing
// A function whose first input may be missing.
#include "../../../sdk/plugin/test/few_inputs.hpp"

CATENA_PLUGIN("org.example.missing_first", "1.0.0", few_inputs::Scaled);
