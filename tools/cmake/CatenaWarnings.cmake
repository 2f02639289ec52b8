# The project's warnings, for every target; packages come as system headers and stay silent.
set(catena_warnings -Wall -Wextra -Wpedantic -Wshadow -Wconversion)
if(CATENA_WERROR)
    list(APPEND catena_warnings -Werror)
endif()
add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:${catena_warnings}>")
unset(catena_warnings)
# GCC 12 takes std::string's own copies for overlapping ones.
add_compile_options("$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict>")
