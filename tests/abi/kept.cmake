# Tests compatibility between minors: plugins kept from each minor in current hosts and in hosts of
# the next minor, and plugins of the next minor in current hosts. next.py derives the headers of the
# next minor, which does not exist yet, from the current ones.
set(next "${CMAKE_CURRENT_BINARY_DIR}/next/include")
add_custom_command(OUTPUT "${next}/catena/abi.h"
    COMMAND Python3::Interpreter -B "${CMAKE_CURRENT_SOURCE_DIR}/next.py" "${include}" "${next}"
    DEPENDS next.py layout.py ${headers} VERBATIM)
add_custom_target(abi-next-headers DEPENDS "${next}/catena/abi.h")

# NEXT needs minor 0, NEEDED the next minor; UNGUARDED reads new fields without checking for them.
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

abi_test_program(abi-skew skew_test.cpp LIBS catena::loader catena::testing
    PLUGINS NEXT=abi_NEXT NEEDED=abi_NEEDED UNGUARDED=abi_UNGUARDED)
add_dependencies(abi-skew ${plugin_targets})
add_test(NAME abi-skew COMMAND abi-skew)
set_tests_properties(abi-skew PROPERTIES LABELS abi TIMEOUT ${CATENA_TEST_TIMEOUT})

set(families MATH=math ARRAY=array ACTIVATION=activation)
abi_test_program(abi-kept-core kept_core_test.cpp LIBS catena::loader catena::plugin)
add_dependencies(abi-kept-core ${plugin_targets})
abi_test_program(abi-kept-world kept_world_test.cpp LIBS catena::testing PLUGINS ${families})
# Compiles the sources of catena::testing with the next minor's headers, as one translation unit.
abi_test_program(abi-kept-world-next kept_world_test.cpp NEXT LIBS catena::plugin ${CMAKE_DL_LIBS}
    PLUGINS ${families} NEXT=abi_NEXT NEEDED=abi_NEEDED)
file(GLOB kit CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/sdk/plugin/testing/*.cpp")
target_sources(abi-kept-world-next PRIVATE ${kit})
target_include_directories(abi-kept-world-next PRIVATE
    "${PROJECT_SOURCE_DIR}/sdk/plugin" "${PROJECT_SOURCE_DIR}/sdk/abi/rules")
target_compile_definitions(abi-kept-world-next PRIVATE
    $<TARGET_PROPERTY:catena-testing,INTERFACE_COMPILE_DEFINITIONS>)
set_target_properties(abi-kept-world-next PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
set_source_files_properties(kept_world_test.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)

foreach(sums IN LISTS kept)
    get_filename_component(folder "${sums}" DIRECTORY)
    get_filename_component(version "${folder}" NAME)
    # Tests use copies, because hosts may refuse the checked-out files for their mode or owner.
    file(GLOB plugins CONFIGURE_DEPENDS "${folder}/*.catena")
    set(copies "${CMAKE_CURRENT_BINARY_DIR}/kept/${version}")
    file(COPY ${plugins} DESTINATION "${copies}"
        FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
    foreach(host IN ITEMS core world world-next)
        add_test(NAME abi-kept-${host}-${version} COMMAND abi-kept-${host})
        set_tests_properties(abi-kept-${host}-${version} PROPERTIES
            LABELS abi ENVIRONMENT "CATENA_KEPT=${copies};CATENA_KERNEL_CACHE=off"
            TIMEOUT ${CATENA_TEST_TIMEOUT})
    endforeach()
endforeach()

# Builds the host in plain C with the next minor's headers, to run kept plugins, and with the
# headers of each kept minor, to run current plugins and one of the next minor.
function(abi_minihost version headers)
    add_executable(abi-minihost-${version}
        "${PROJECT_SOURCE_DIR}/sdk/plugin/examples/minihost/minihost.c")
    target_include_directories(abi-minihost-${version} PRIVATE "${headers}")
    target_link_libraries(abi-minihost-${version} PRIVATE ${CMAKE_DL_LIBS})
    set_target_properties(abi-minihost-${version} PROPERTIES
        RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin/test")
endfunction()
# abi_minihost_test(VERSION NAME EXPECTED ARGUMENT...): adds a test; its output must match EXPECTED.
function(abi_minihost_test version name expected)
    add_test(NAME abi-minihost-${version}-${name} COMMAND abi-minihost-${version} ${ARGN})
    set_tests_properties(abi-minihost-${version}-${name} PROPERTIES
        LABELS abi PASS_REGULAR_EXPRESSION "${expected}")
endfunction()
set(w "^w .3. = 2.21 2.44 2.69\ngradient of x .3. = 1.1 1.2 1.3\n")
string(APPEND w "gradient of y .3. = 0.1 0.2 0.3\ngradient of z .3. = 1 1 1\n$")
set(y "^y .2. = 0.0549834 0.119738\ngradient of x .2. = 0.599337 0.694792\n$")

set(with --compose)
foreach(family IN ITEMS math array activation)
    list(APPEND with --with "$<TARGET_FILE:${family}.catena>")
endforeach()

abi_minihost(next "${next}")
add_dependencies(abi-minihost-next abi-next-headers)
foreach(sums IN LISTS kept)
    get_filename_component(folder "${sums}" DIRECTORY)
    get_filename_component(version "${folder}" NAME)
    abi_minihost_test(next c-${version} "${w}" "${folder}/mul_add_c.catena"
                      org.example.c.mul_add 3 3 3)
    abi_minihost_test(next cpp-${version} "${w}" "${folder}/mul_add.catena"
                      org.example.mul_add 3 3 3)
    abi_minihost_test(next composed-${version} "${y}" ${with}
                      "${folder}/swish.catena" org.example.swish 2 beta=2)
    abi_minihost_test(next saved-${version} "^y .2. = .*gradient of x .2. = [02] [02]\n$"
                      "${folder}/state.catena" org.example.c.dropout 2 ratio=0.5)

    abi_minihost(${version} "${folder}/include")
    add_dependencies(abi-minihost-${version} swish.catena mul_add_c.catena
                     math.catena array.catena activation.catena)
    abi_minihost_test(${version} c "${w}" "$<TARGET_FILE:mul_add_c.catena>"
                      org.example.c.mul_add 3 3 3)
    abi_minihost_test(${version} composed "${y}" ${with}
                      "$<TARGET_FILE:swish.catena>" org.example.swish 2 beta=2)
    abi_minihost_test(${version} next "^org.example.next.x, unused=. -> y\n$"
                      "$<TARGET_FILE:abi_NEXT.catena>")
    abi_minihost_test(${version} needed "it needs 1.[0-9]+, this host has ${version}\n"
                      "$<TARGET_FILE:abi_NEEDED.catena>")
endforeach()
