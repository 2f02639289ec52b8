# catena_add_sdk_library(NAME [PUBLIC target...] [PRIVATE target...])
#
# A part of the SDK above catena::host, in the current folder: catena::NAME, of src/*.cpp, with its
# headers in include/ and its tests in test/.
function(catena_add_sdk_library name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "PUBLIC;PRIVATE")
    file(GLOB sources CONFIGURE_DEPENDS "src/*.cpp")
    add_library(catena-${name} SHARED ${sources})
    add_library(catena::${name} ALIAS catena-${name})
    target_include_directories(catena-${name} PUBLIC
        "$<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include>"
        "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
    target_link_libraries(catena-${name}
        PUBLIC catena::host ${arg_PUBLIC}
        PRIVATE fmt::fmt ${arg_PRIVATE})
    catena_unity_build(catena-${name} 6)
    set_target_properties(catena-${name} PROPERTIES
        EXPORT_NAME ${name}
        CXX_VISIBILITY_PRESET default
        VERSION "${PROJECT_VERSION}" SOVERSION "${CATENA_HOST_SOVERSION}")
    install(TARGETS catena-${name} EXPORT catena-targets
            LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
    install(DIRECTORY include/ DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
    if(CATENA_BUILD_TESTS)
        add_subdirectory(test)
    endif()
endfunction()
