# A stand-in for libcuda that records what it is asked (tests/support/fake_libcuda.h), and what a test
# links to steer it.
add_library(cubist_fake_libcuda MODULE
  ${CMAKE_CURRENT_LIST_DIR}/fake_libcuda.cpp ${CMAKE_CURRENT_LIST_DIR}/fake_state.cpp
  ${CMAKE_CURRENT_LIST_DIR}/fake_calls.cpp ${CMAKE_CURRENT_LIST_DIR}/fake_elf.cpp
  ${CMAKE_CURRENT_LIST_DIR}/fake_aux.cpp ${CMAKE_CURRENT_LIST_DIR}/fake_decode.cpp ${PROJECT_SOURCE_DIR}/src/model/dtype.cpp)
target_include_directories(cubist_fake_libcuda PRIVATE ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(cubist_fake_libcuda PRIVATE cubist_reference cubist_build_flags fmt::fmt tl::expected)
set_target_properties(cubist_fake_libcuda PROPERTIES PREFIX "" OUTPUT_NAME fake_libcuda
                      LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)

add_library(cubist_fake_libcuda_client STATIC
  ${CMAKE_CURRENT_LIST_DIR}/fake_libcuda_client.cpp ${CMAKE_CURRENT_LIST_DIR}/fake_cubin.cpp)
target_include_directories(cubist_fake_libcuda_client PUBLIC ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(cubist_fake_libcuda_client PUBLIC cubist_build_flags ${CMAKE_DL_LIBS})
target_compile_definitions(cubist_fake_libcuda_client PRIVATE
  CUBIST_FAKE_LIBCUDA="$<TARGET_FILE:cubist_fake_libcuda>")
add_dependencies(cubist_fake_libcuda_client cubist_fake_libcuda)
