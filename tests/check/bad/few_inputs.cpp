// Functions whose first input may be missing.
#include "../../../sdk/plugin/test/few_inputs.hpp"

// no_inputs fails: nothing
#ifdef BAD_no_inputs
CATENA_PLUGIN("org.example.no_inputs", "1.0.0", few_inputs::Ramp);
#endif

// missing_first fails: nothing
#ifdef BAD_missing_first
CATENA_PLUGIN("org.example.missing_first", "1.0.0", few_inputs::Scaled);
#endif
