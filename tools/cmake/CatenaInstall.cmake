# find_package(catena): the targets of the export set catena-targets, and catena_add_plugin().
include(CMakePackageConfigHelpers)
set(catena_package "${CMAKE_INSTALL_LIBDIR}/cmake/catena")
configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/catenaConfig.cmake.in"
    "${PROJECT_BINARY_DIR}/catenaConfig.cmake" INSTALL_DESTINATION "${catena_package}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/catenaConfigVersion.cmake"
    COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/catenaConfig.cmake"
              "${PROJECT_BINARY_DIR}/catenaConfigVersion.cmake"
        DESTINATION "${catena_package}")
install(EXPORT catena-targets NAMESPACE catena:: DESTINATION "${catena_package}")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
unset(catena_package)
