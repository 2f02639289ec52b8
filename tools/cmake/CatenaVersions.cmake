# catena's version is defined only in CMakeLists.txt, that of the ABI only by its header base.h.
#
# The SOVERSION of catena-core is the ABI's major, because plugins work until that changes. Each
# minor release may change the C++ interface of catena-host, so its SOVERSION has the minor.
set(CATENA_VERSION "${PROJECT_VERSION}${CATENA_PRERELEASE}")
set(CATENA_HOST_SOVERSION "${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}")
string(REPLACE "-rc." "rc" CATENA_PYTHON_VERSION "${CATENA_VERSION}")
string(REPLACE "-" "~" CATENA_DEBIAN_VERSION "${CATENA_VERSION}")  # sorts before the release
set(abi_header "${PROJECT_SOURCE_DIR}/sdk/abi/include/catena/abi/base.h")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${abi_header}")
foreach(part IN ITEMS MAJOR MINOR)
    file(STRINGS "${abi_header}" line REGEX "^#define CATENA_ABI_${part} [0-9]+u")
    if(NOT line MATCHES "CATENA_ABI_${part} ([0-9]+)u")
        message(FATAL_ERROR "${abi_header}: expected '#define CATENA_ABI_${part} <number>u', "
                            "got '${line}'")
    endif()
    set(CATENA_ABI_${part} "${CMAKE_MATCH_1}")
endforeach()

# catena_add_version_to(SOURCE): defines CATENA_VERSION and CATENA_ABI_VERSION in SOURCE.
function(catena_add_version_to source)
    set_property(SOURCE "${source}" APPEND PROPERTY COMPILE_DEFINITIONS
        "CATENA_VERSION=\"${CATENA_VERSION}\""
        "CATENA_ABI_VERSION=\"${CATENA_ABI_MAJOR}.${CATENA_ABI_MINOR}\"")
endfunction()

# catena_test_command_line(PROGRAM): tests that it refuses empty values and reports lost output.
function(catena_test_command_line program)
    catena_add_script_test(${program}-command-line
        "${PROJECT_SOURCE_DIR}/sdk/program/test/command_line_test.py" "$<TARGET_FILE:${program}>"
        LABELS tools)
endfunction()

# catena_test_version(PROGRAM): tests that --version prints both versions, and the command line.
function(catena_test_version program)
    catena_test_command_line(${program})
    if(CATENA_BUILD_TESTS)
        set(abi "${CATENA_ABI_MAJOR}.${CATENA_ABI_MINOR}")
        add_test(NAME ${program}-version COMMAND ${program} --version)
        set_tests_properties(${program}-version PROPERTIES LABELS tools
            PASS_REGULAR_EXPRESSION "^${program} ${CATENA_VERSION}, ABI ${abi}\n$")
    endif()
endfunction()

# catena_add_tool(PROGRAM SOURCE... LIBS target...): adds and installs a program, with both versions
# defined in main.cpp.
function(catena_add_tool program)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LIBS")
    add_executable(${program} ${arg_UNPARSED_ARGUMENTS})
    target_link_libraries(${program} PRIVATE ${arg_LIBS} catena-command-line fmt::fmt)
    catena_add_version_to(main.cpp)
    catena_test_version(${program})
    install(TARGETS ${program} RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endfunction()
