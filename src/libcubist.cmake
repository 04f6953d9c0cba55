# libcubist, shared and static, from the rooms' objects, and what an installed tree needs to be found.
configure_file(${PROJECT_SOURCE_DIR}/include/cubist/version.h.in
               ${PROJECT_BINARY_DIR}/include/cubist/version.h @ONLY)

set(_headers ${PROJECT_SOURCE_DIR}/include/cubist/cubist.h
             ${PROJECT_SOURCE_DIR}/include/cubist/cubist.hpp
             ${PROJECT_SOURCE_DIR}/include/cubist/export.h
             ${PROJECT_BINARY_DIR}/include/cubist/version.h)

foreach(_kind SHARED STATIC)
  string(TOLOWER ${_kind} _suffix)
  set(_name cubist_${_suffix})
  add_library(${_name} ${_kind} ${_objects})
  target_sources(${_name} PUBLIC FILE_SET HEADERS
    BASE_DIRS ${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/include FILES ${_headers})
  target_compile_features(${_name} INTERFACE c_std_99 cxx_std_17)
  set_target_properties(${_name} PROPERTIES OUTPUT_NAME cubist VERIFY_INTERFACE_HEADER_SETS ON)
endforeach()

# PRIVATE: a user of the shared library sees nothing of what it is made of; of the static one, CMake
# hands on what must be linked.
target_link_libraries(cubist_shared PRIVATE $<BUILD_INTERFACE:cubist_build_flags> ${_libs})
target_link_libraries(cubist_static PRIVATE $<BUILD_INTERFACE:cubist_build_flags> ${_libs})
target_link_options(cubist_shared PRIVATE
  "LINKER:--version-script=${CMAKE_CURRENT_SOURCE_DIR}/libcubist.map" LINKER:--no-undefined)
set_target_properties(cubist_shared PROPERTIES
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR} EXPORT_NAME cubist
  LINK_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/libcubist.map)
set_target_properties(cubist_static PROPERTIES EXPORT_NAME static)
if(CUBIST_SANITIZE)
  # The sanitizers' own runtime is in the program, not in the library.
  set_target_properties(cubist_shared PROPERTIES LINK_OPTIONS
    "LINKER:--version-script=${CMAKE_CURRENT_SOURCE_DIR}/libcubist.map")
endif()
add_library(cubist::cubist ALIAS cubist_shared)
add_library(cubist::static ALIAS cubist_static)

include(CMakePackageConfigHelpers)
set(_config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/cubist)
install(TARGETS cubist_shared EXPORT cubistTargets FILE_SET HEADERS)
install(EXPORT cubistTargets NAMESPACE cubist:: DESTINATION ${_config_dir})
install(TARGETS cubist_static EXPORT cubistStaticTargets FILE_SET HEADERS)
install(EXPORT cubistStaticTargets NAMESPACE cubist:: DESTINATION ${_config_dir})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/cubistConfig.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/cubistConfig.cmake INSTALL_DESTINATION ${_config_dir})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/cubistConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/cubistConfig.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/cubistConfigVersion.cmake DESTINATION ${_config_dir})

file(RELATIVE_PATH _pc_to_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
foreach(_pc cubist.pc cubist-static.pc)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/${_pc}.in ${CMAKE_CURRENT_BINARY_DIR}/${_pc} @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${_pc} DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()

# Manifests, and beside them the kernels that the folder source of ours names.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/manifests/ DESTINATION ${CMAKE_INSTALL_DATADIR}/cubist/manifests)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/kernels/prebuilt/
        DESTINATION ${CMAKE_INSTALL_DATADIR}/cubist/kernels/prebuilt)
