# catena_share_headers(NAME LIBS target... HEADERS header...)
#
# Precompiles HEADERS once, with the options of programs that link LIBS. Such programs use them with
# target_precompile_headers(PROGRAM REUSE_FROM NAME). The preset dev compiles without precompiled headers,
# so that each file is known to include what it uses.
function(catena_share_headers name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LIBS;HEADERS")
    file(CONFIGURE OUTPUT "${name}.cpp" CONTENT "int main() {}\n")
    add_executable(${name} EXCLUDE_FROM_ALL "${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp")
    target_link_libraries(${name} PRIVATE ${arg_LIBS})
    target_precompile_headers(${name} PRIVATE ${arg_HEADERS})
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}")
endfunction()
