# catena_add_library(NAME UNITY n SOURCES file... PUBLIC target... PRIVATE target...)
#
# Adds the shared library catena::NAME with the version of the SDK. Its headers are in include/.
function(catena_add_library name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "UNITY" "SOURCES;PUBLIC;PRIVATE")
    add_library(catena-${name} SHARED ${arg_SOURCES})
    add_library(catena::${name} ALIAS catena-${name})
    target_include_directories(catena-${name} PUBLIC
        "$<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include>"
        "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
    target_link_libraries(catena-${name} PUBLIC ${arg_PUBLIC} PRIVATE fmt::fmt ${arg_PRIVATE})
    catena_unity_build(catena-${name} ${arg_UNITY})
    set_target_properties(catena-${name} PROPERTIES
        EXPORT_NAME ${name}
        CXX_VISIBILITY_PRESET default
        VERSION "${PROJECT_VERSION}" SOVERSION "${CATENA_HOST_SOVERSION}")
    install(TARGETS catena-${name} EXPORT catena-targets
            LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
    install(DIRECTORY include/ DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
endfunction()

# catena_add_sdk_library(NAME [PUBLIC target...] [PRIVATE target...])
#
# Adds such a library from src/*.cpp that links catena::host. Its tests are in test/.
function(catena_add_sdk_library name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "PUBLIC;PRIVATE")
    file(GLOB sources CONFIGURE_DEPENDS "src/*.cpp")
    catena_add_library(${name} UNITY 6 SOURCES ${sources}
        PUBLIC catena::host ${arg_PUBLIC} PRIVATE ${arg_PRIVATE})
    if(CATENA_BUILD_TESTS)
        add_subdirectory(test)
    endif()
endfunction()
