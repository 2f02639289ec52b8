# catena_add_test(NAME SOURCES file... [LIBS target...] [LABELS label...])
#
# Adds one doctest executable, <build>/bin/test/NAME, and one ctest entry. It links a main(), unless a
# source has one; sources only include <doctest/doctest.h>. Tests of the host SDK and of plugins use
# the precompiled headers of sdk/host/test and sdk/plugin.
set(CATENA_TESTS full CACHE STRING "The tests: full, or quick, which leaves out what is slow")
if(NOT CATENA_TESTS MATCHES "^(full|quick)$")
    message(FATAL_ERROR "CATENA_TESTS: expected full or quick, got '${CATENA_TESTS}'")
endif()

# catena_full_tests_only()
#
# Skips the rest of the caller's file if CATENA_TESTS is quick.
macro(catena_full_tests_only)
    if(CATENA_TESTS STREQUAL "quick")
        return()
    endif()
endmacro()

if(CATENA_BUILD_TESTS)
    enable_testing()
    # Tests never see the settings and the plugins of the user who runs ctest.
    configure_file("${CMAKE_CURRENT_LIST_DIR}/test_environment.cmake.in"
                   "${PROJECT_BINARY_DIR}/test_environment.cmake" @ONLY)
    set_property(DIRECTORY APPEND PROPERTY
        TEST_INCLUDE_FILES "${PROJECT_BINARY_DIR}/test_environment.cmake")
    find_package(doctest REQUIRED)
    find_package(Python3 REQUIRED COMPONENTS Interpreter)
    file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/doctest_main.cpp" CONTENT
"#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
")
    add_library(catena-test-main STATIC "${PROJECT_BINARY_DIR}/doctest_main.cpp")
    target_link_libraries(catena-test-main PUBLIC doctest::doctest)
    target_include_directories(catena-test-main PUBLIC "${PROJECT_SOURCE_DIR}/tests/include")
    # Tests are compiled without optimization, which saves more time than it costs, except tests that
    # compute: those with the test kit, and targets with the property CATENA_OPTIMIZED.
    set(optimized "$<IN_LIST:catena::testing,$<TARGET_PROPERTY:LINK_LIBRARIES>>"
                  "$<BOOL:$<TARGET_PROPERTY:CATENA_OPTIMIZED>>")
    list(JOIN optimized "," optimized)
    target_compile_options(catena-test-main PUBLIC
        "$<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:$<IF:$<OR:${optimized}>,-O1,-O0>>")
    set_target_properties(catena-test-main PROPERTIES
        ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin/test")
endif()

# Ends tests that hang, not tests that are slow on a slow or busy machine.
if(CATENA_SANITIZE)
    set(CATENA_TEST_TIMEOUT 10800)
else()
    set(CATENA_TEST_TIMEOUT 1800)
endif()

function(catena_add_test name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBS;LABELS")
    if(NOT arg_SOURCES OR arg_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "catena_add_test(${name}): expected SOURCES, LIBS and LABELS, "
                            "got '${ARGN}'")
    endif()
    if(NOT CATENA_BUILD_TESTS)
        return()
    endif()
    add_executable(${name} ${arg_SOURCES})
    target_link_libraries(${name} PRIVATE ${arg_LIBS} catena-test-main)
    if("catena::testing" IN_LIST arg_LIBS)
        target_precompile_headers(${name} REUSE_FROM plugin-test-headers)
    elseif(arg_LIBS MATCHES "catena::(host|images|models|distributed|program)")
        target_precompile_headers(${name} REUSE_FROM host-test-headers)
    endif()
    set_target_properties(${name} PROPERTIES
        INSTALL_RPATH "$ORIGIN/../../lib"
        RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin/test")
    add_test(NAME ${name} COMMAND ${name})
    set_tests_properties(${name} PROPERTIES
        LABELS "${arg_LABELS}" TIMEOUT ${CATENA_TEST_TIMEOUT})
endfunction()

# catena_add_script_test(NAME SCRIPT [arg...] [LABELS label...]): adds a Python script.
function(catena_add_script_test name script)
    cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "LABELS")
    if(CATENA_BUILD_TESTS)
        get_filename_component(script "${script}" ABSOLUTE)
        add_test(NAME ${name}
                 COMMAND Python3::Interpreter -B "${script}" ${arg_UNPARSED_ARGUMENTS}
                 COMMAND_EXPAND_LISTS)
        set_tests_properties(${name} PROPERTIES
            LABELS "${arg_LABELS}" SKIP_RETURN_CODE 77 TIMEOUT ${CATENA_TEST_TIMEOUT})
    endif()
endfunction()

# catena_add_program_test(NAME SCRIPT PROGRAM [LABELS label...] [ARGS arg...])
#
# Adds a Python script of unittest cases that run a program (see program_case.py).
function(catena_add_program_test name script program)
    cmake_parse_arguments(PARSE_ARGV 3 arg "" "" "LABELS;ARGS")
    if(NOT CATENA_BUILD_TESTS)
        return()
    endif()
    catena_add_script_test(${name} ${script} "$<TARGET_FILE:${program}>" ${arg_ARGS}
                           LABELS host ${arg_LABELS})
    set_tests_properties(${name} PROPERTIES
        ENVIRONMENT "PYTHONPATH=${PROJECT_SOURCE_DIR}/sdk/program/test;\
CATENA_TEST_TIMEOUT=${CATENA_TEST_TIMEOUT};CATENA_SANITIZE=${CATENA_SANITIZE}")
endfunction()

# catena_add_compile_test(PREFIX CASE SOURCE TEST [ERROR])
#
# Adds the test PREFIX-compile-CASE: SOURCE compiles with -DCASE in capitals and the include folders of
# the executable TEST or, if ERROR is given, the compiler's output matches it. UBSan is on, because GCC
# then accepts fewer constant expressions.
function(catena_add_compile_test prefix case source test)
    string(TOUPPER ${case} macro)
    set(name ${prefix}-compile-${case})
    add_test(NAME ${name}
        COMMAND "${CMAKE_CXX_COMPILER}" -std=c++20 -fsyntax-only -fsanitize=undefined -D${macro}
                "-I$<JOIN:$<TARGET_PROPERTY:${test},INCLUDE_DIRECTORIES>,;-I>"
                "${CMAKE_CURRENT_SOURCE_DIR}/${source}"
        COMMAND_EXPAND_LISTS)
    set_tests_properties(${name} PROPERTIES LABELS ${prefix} PASS_REGULAR_EXPRESSION "${ARGV4}")
endfunction()
