# Warm launches of the trtllm-gen family over a libcuda that does nothing: for a test that counts
# allocations and a bench of host time.
if(NOT TARGET cubist_warm_calls)
  add_library(cubist_quiet_libcuda MODULE ${CMAKE_CURRENT_LIST_DIR}/quiet_libcuda.cpp)
  target_include_directories(cubist_quiet_libcuda PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(cubist_quiet_libcuda PRIVATE cubist_build_flags fmt::fmt tl::expected)
  set_target_properties(cubist_quiet_libcuda PROPERTIES PREFIX "" OUTPUT_NAME quiet_libcuda
                        LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)

  add_library(cubist_warm_calls STATIC
    ${CMAKE_CURRENT_LIST_DIR}/warm_calls.cpp ${CMAKE_CURRENT_LIST_DIR}/made_trtllm_gen.cpp
    ${CMAKE_CURRENT_LIST_DIR}/synthetic_cubin.cpp)
  target_include_directories(cubist_warm_calls PUBLIC ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(cubist_warm_calls PUBLIC cubist_internal)
  target_compile_definitions(cubist_warm_calls PRIVATE
    CUBIST_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
    CUBIST_QUIET_LIBCUDA="$<TARGET_FILE:cubist_quiet_libcuda>")
  add_dependencies(cubist_warm_calls cubist_quiet_libcuda)
endif()
