# What was built before and what will be built later: plugins kept from each minor in the hosts of
# today and of the next minor, and plugins of the next minor in the hosts of today. That minor is made
# up: next.py derives its headers from those of today.
set(next "${CMAKE_CURRENT_BINARY_DIR}/next/include")
add_custom_command(OUTPUT "${next}/catena/abi.h"
    COMMAND Python3::Interpreter -B "${CMAKE_CURRENT_SOURCE_DIR}/next.py" "${include}" "${next}"
    DEPENDS next.py layout.py ${headers} VERBATIM)
add_custom_target(abi-next-headers DEPENDS "${next}/catena/abi.h")

# Three times the same plugin: NEXT needs this minor, NEEDED needs the next, UNGUARDED reads blindly.
set(NEXT_options "")
set(NEEDED_options CATENA_TARGET_MINOR=CATENA_ABI_MINOR NAME="org.example.needed")
set(UNGUARDED_options UNGUARDED)
foreach(name IN ITEMS NEXT NEEDED UNGUARDED)
    catena_add_plugin(NAME abi_${name} SOURCES samples/next.c
                      OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/plugins")
    target_include_directories(abi_${name}.catena BEFORE PRIVATE "${next}")
    target_compile_definitions(abi_${name}.catena PRIVATE ${${name}_options})
    add_dependencies(abi_${name}.catena abi-next-headers)
endforeach()

# abi_test_program(NAME SOURCE [LIBS target...] [PLUGINS NAME=target...] [NEXT])
function(abi_test_program name source)
    cmake_parse_arguments(PARSE_ARGV 2 arg "NEXT" "" "LIBS;PLUGINS")
    add_executable(${name} ${source})
    target_compile_options(${name} PRIVATE -O0)
    target_link_libraries(${name} PRIVATE ${arg_LIBS} catena-test-main)
    set_target_properties(${name} PROPERTIES
        INSTALL_RPATH "$ORIGIN/../../lib" RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin/test")
    foreach(plugin IN LISTS arg_PLUGINS)
        string(REGEX MATCH "(.*)=(.*)" all "${plugin}")
        target_compile_definitions(${name} PRIVATE
            ${CMAKE_MATCH_1}_PLUGIN="$<TARGET_FILE:${CMAKE_MATCH_2}.catena>")
        add_dependencies(${name} ${CMAKE_MATCH_2}.catena)
    endforeach()
    if(arg_NEXT)
        target_include_directories(${name} BEFORE PRIVATE "${next}")
        target_compile_options(${name} PRIVATE -Wno-missing-field-initializers)
        add_dependencies(${name} abi-next-headers)
    endif()
endfunction()

abi_test_program(abi-skew skew_test.cpp LIBS catena::core catena::testing
    PLUGINS NEXT=abi_NEXT NEEDED=abi_NEEDED UNGUARDED=abi_UNGUARDED)
add_dependencies(abi-skew ${plugin_targets})
add_test(NAME abi-skew COMMAND abi-skew)
set_tests_properties(abi-skew PROPERTIES LABELS abi TIMEOUT ${CATENA_TEST_TIMEOUT})

set(families MATH=math ARRAY=array ACTIVATION=activation)
abi_test_program(abi-kept-core kept_core_test.cpp LIBS catena::core catena::plugin)
add_dependencies(abi-kept-core ${plugin_targets})
abi_test_program(abi-kept-world kept_world_test.cpp LIBS catena::testing PLUGINS ${families})
abi_test_program(abi-kept-world-next kept_world_test.cpp NEXT LIBS catena::testing
    PLUGINS ${families} NEXT=abi_NEXT NEEDED=abi_NEEDED)

foreach(sums IN LISTS kept)
    get_filename_component(folder "${sums}" DIRECTORY)
    get_filename_component(version "${folder}" NAME)
    # Hosts refuse what a checkout's umask or owner may have made of them.
    file(GLOB plugins CONFIGURE_DEPENDS "${folder}/*.catena")
    set(copies "${CMAKE_CURRENT_BINARY_DIR}/kept/${version}")
    file(COPY ${plugins} DESTINATION "${copies}"
        FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
    foreach(host IN ITEMS core world world-next)
        add_test(NAME abi-kept-${host}-${version} COMMAND abi-kept-${host})
        set_tests_properties(abi-kept-${host}-${version} PROPERTIES
            LABELS abi ENVIRONMENT "CATENA_KEPT=${copies}" TIMEOUT ${CATENA_TEST_TIMEOUT})
    endforeach()
endforeach()
