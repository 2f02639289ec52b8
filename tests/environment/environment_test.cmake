# What ctest hands to a test, and what it would not.
#
# usage: cmake -P environment_test.cmake BUILD
set(build "${CMAKE_ARGV3}")
function(expect_clean)
    if(NOT "$ENV{XDG_DATA_HOME}" STREQUAL "${build}/no-user")
        message(FATAL_ERROR "XDG_DATA_HOME: expected ${build}/no-user, got '$ENV{XDG_DATA_HOME}'")
    endif()
    if(EXISTS "${build}/no-user")
        message(FATAL_ERROR "${build}/no-user: expected that no test writes there")
    endif()
    execute_process(COMMAND "${CMAKE_COMMAND}" -E environment OUTPUT_VARIABLE all)
    if(all MATCHES "(^|\n)(CATENA_[^\n]*)")
        message(FATAL_ERROR "expected no setting of catena, got ${CMAKE_MATCH_2}")
    endif()
endfunction()

expect_clean()
set(ENV{XDG_DATA_HOME} "/somebody")
set(ENV{CATENA_PLUGINS} "off")
set(ENV{CATENA_PLUGIN_PATH} "/a;b:/c")
set(ENV{CATENA_FALLBACK} "cpu")
include("${build}/test_environment.cmake")
expect_clean()
