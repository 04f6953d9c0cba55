# One INTERFACE target carries every flag, so that no room invents its own.
add_library(cubist_build_flags INTERFACE)
target_compile_options(cubist_build_flags INTERFACE -Wall -Wextra -Wconversion -Wshadow
                       $<$<BOOL:${CUBIST_WERROR}>:-Werror>)
# GCC 12 sees an impossible overlap in `"text" + std::string` when it inlines (GCC bug 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(cubist_build_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()
# GCC takes the sources of a unity file for headers, whose types must not name anonymous ones.
if(CUBIST_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(cubist_build_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
endif()
target_include_directories(cubist_build_flags INTERFACE
  ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/include)

# Apart, because programs that stand for users' own take the sanitizers alone.
add_library(cubist_sanitizers INTERFACE)
target_link_libraries(cubist_build_flags INTERFACE cubist_sanitizers)
if(CUBIST_SANITIZE)
  string(REPLACE ";" "," _cubist_sanitizers "${CUBIST_SANITIZE}")
  target_compile_options(cubist_sanitizers INTERFACE
    -fsanitize=${_cubist_sanitizers} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(cubist_sanitizers INTERFACE -fsanitize=${_cubist_sanitizers})
endif()

if(CUBIST_BUILD_FUZZERS)
  # What libFuzzer steers by, and what llvm-cov counts lines with.
  target_compile_options(cubist_build_flags INTERFACE
    -fsanitize=fuzzer-no-link -fprofile-instr-generate -fcoverage-mapping)
  target_link_options(cubist_build_flags INTERFACE -fprofile-instr-generate)
endif()

find_program(CUBIST_CCACHE ccache)
if(CUBIST_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${CUBIST_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CUBIST_CCACHE})
endif()

# cubist_add_room(NAME SOURCES ... ROOMS ... LIBS ...)
# A room is one folder of src/: an OBJECT library that may include only the rooms named in ROOMS
# (the same table as src/LAYERS, which tests/lint checks). Its objects end up in libcubist.
function(cubist_add_room name)
  cmake_parse_arguments(ARG "" "" "SOURCES;ROOMS;LIBS" ${ARGN})
  if(ARG_SOURCES)
    add_library(cubist_${name} OBJECT ${ARG_SOURCES})
    set_target_properties(cubist_${name} PROPERTIES UNITY_BUILD ${CUBIST_UNITY})
    target_link_libraries(cubist_${name} PRIVATE cubist_build_flags ${ARG_LIBS})
    set_property(GLOBAL APPEND PROPERTY CUBIST_ROOM_OBJECTS $<TARGET_OBJECTS:cubist_${name}>)
    set_property(GLOBAL APPEND PROPERTY CUBIST_ROOM_LIBS ${ARG_LIBS})
  else()
    add_library(cubist_${name} INTERFACE)
  endif()
endfunction()
