# Installs the packages for CMake and pkg-config, documents and examples.
include(CMakePackageConfigHelpers)
set(catena_package "${CMAKE_INSTALL_LIBDIR}/cmake/catena")
set(catena_here "${PROJECT_BINARY_DIR}/${catena_package}")  # the build tree is a package, too
configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/catenaConfig.cmake.in"
    "${catena_here}/catenaConfig.cmake" INSTALL_DESTINATION "${catena_package}"
    PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_BINDIR)
write_basic_package_version_file("${catena_here}/catenaConfigVersion.cmake"
    COMPATIBILITY SameMinorVersion)
install(FILES "${catena_here}/catenaConfig.cmake" "${catena_here}/catenaConfigVersion.cmake"
        DESTINATION "${catena_package}")
install(EXPORT catena-targets NAMESPACE catena:: DESTINATION "${catena_package}")
export(EXPORT catena-targets NAMESPACE catena:: FILE "${catena_here}/catena-targets.cmake")
foreach(file IN ITEMS plugin/cmake/CatenaPlugin.cmake plugin/cmake/plugin.map
                      host/cmake/CatenaHeader.cmake)
    get_filename_component(catena_link "${file}" NAME)
    install(FILES "sdk/${file}" DESTINATION "${catena_package}")
    file(CREATE_LINK "${PROJECT_SOURCE_DIR}/sdk/${file}" "${catena_here}/${catena_link}" SYMBOLIC)
endforeach()

# The path from the folder of the .pc files to the prefix: relative, so that the tree can be moved.
set(catena_pc "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
string(REGEX REPLACE "[^/]+" ".." catena_pc_prefix "${catena_pc}")
function(catena_install_pc name catena_pc_about catena_pc_use catena_pc_libs)
    configure_file("${PROJECT_SOURCE_DIR}/tools/cmake/catena.pc.in"
                   "${PROJECT_BINARY_DIR}/catena-${name}.pc" @ONLY)
    install(FILES "${PROJECT_BINARY_DIR}/catena-${name}.pc" DESTINATION "${catena_pc}")
endfunction()
catena_install_pc(plugin "Headers and flags for plugins of catena, in C or C++20"
    "c++ -std=c++20 -O3 -fno-math-errno -fno-trapping-math -fPIC -shared NAME.cpp -o NAME.catena \\\n\
#     $(pkg-config --cflags --libs catena-plugin)"
    "-lcatena-plugin -Wl,--version-script=\${pcfiledir}/../cmake/catena/plugin.map -Wl,-z,defs")
catena_install_pc(testing "A small host to test plugins of catena with"
    "c++ -std=c++20 TEST.cpp -o TEST $(pkg-config --cflags --libs catena-testing)\n\
# CATENA_TESTING_PLUGINS=$(pkg-config --variable=plugindir catena-testing) ./TEST"
    "-lcatena-testing -lcatena-plugin -ldl")
catena_install_pc(host "Arrays, graphs, links, optimizers and data of catena, in C++20"
    "c++ -std=c++20 NAME.cpp -o NAME $(pkg-config --cflags --libs catena-host) \\\n\
#     -Wl,-rpath,$(pkg-config --variable=libdir catena-host)"
    "-Wl,--push-state,--no-as-needed -lcatena-loader -lcatena-diagnostics -Wl,--pop-state -lcatena-host -lcatena-core")

# Pages keep their relative paths, so that their links work. Examples are in share/catena/examples.
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DOCDIR}" RENAME copyright)
install(FILES README.md CHANGELOG.md CONTRIBUTING.md LICENSE DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(FILES hosts/README.md DESTINATION "${CMAKE_INSTALL_DOCDIR}/hosts")
foreach(folder IN ITEMS sdk/doc sdk/abi core/doc)
    install(DIRECTORY ${folder}/ DESTINATION "${CMAKE_INSTALL_DOCDIR}/${folder}"
            FILES_MATCHING PATTERN "*.md" PATTERN "*.svg" PATTERN include EXCLUDE
            PATTERN test EXCLUDE)
endforeach()
foreach(kind IN ITEMS plugin host)
    set(catena_examples "${CMAKE_INSTALL_DATADIR}/catena/examples/${kind}")
    install(DIRECTORY sdk/${kind}/examples/ DESTINATION "${catena_examples}"
            PATTERN CMakeLists.txt EXCLUDE PATTERN minihost EXCLUDE)
    set(catena_link "${CMAKE_INSTALL_DOCDIR}/sdk/${kind}")
    file(RELATIVE_PATH catena_examples "/${catena_link}" "/${catena_examples}")
    install(DIRECTORY DESTINATION "${catena_link}")
    install(CODE "
        file(CREATE_LINK \"${catena_examples}\"
             \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${catena_link}/examples\" SYMBOLIC)")
endforeach()
