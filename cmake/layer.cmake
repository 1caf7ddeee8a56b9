# berth_layer(NAME [OPTIMIZED] SOURCES … [ALONE …] [TESTS …] [USES …] [LINKS …])
#
# Defines the static library berth_NAME of one layer, a folder of src/berth/.
#   SOURCES    compiled together in groups of eight, because most of the time goes into headers
#   ALONE      sources that are compiled one by one: they include slow headers, or a program needs
#              one of them without its neighbours
#   TESTS      unit tests, which tests/CMakeLists.txt links into berth-tests
#   USES       the layers below that the layer includes
#   LINKS      other libraries
#   OPTIMIZED  compiled with -O1 under sanitizers, because its tests take minutes otherwise
#
# BERTH_UNITY=OFF compiles each file separately: for a language server, and to see that each file
# includes what it needs.
option(BERTH_UNITY "compile neighbouring files together" ON)

# Compiles a target as every part of Berth is compiled: programs and shared libraries are made of the
# same objects, which show only what BERTH_EXPORT marks.
function(berth_compile target)
  target_compile_options(${target} PRIVATE -fPIC -ffunction-sections -fdata-sections)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -fno-semantic-interposition)
  endif()
  set_target_properties(${target} PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
                        UNITY_BUILD ${BERTH_UNITY} UNITY_BUILD_BATCH_SIZE 8)
endfunction()

function(berth_layer name)
  cmake_parse_arguments(PARSE_ARGV 1 LAYER OPTIMIZED "" "SOURCES;ALONE;TESTS;USES;LINKS")
  add_library(berth_${name} STATIC ${LAYER_SOURCES} ${LAYER_ALONE})
  set_source_files_properties(${LAYER_ALONE} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  berth_compile(berth_${name})
  list(TRANSFORM LAYER_USES PREPEND berth_)
  target_link_libraries(berth_${name} PUBLIC ${LAYER_USES} ${LAYER_LINKS})
  if(BERTH_SANITIZE AND LAYER_OPTIMIZED)
    target_compile_options(berth_${name} PRIVATE -O1)
  endif()
  if(NOT LAYER_TESTS OR NOT BERTH_TESTING)
    return()
  endif()
  add_library(berth_${name}_tests OBJECT ${LAYER_TESTS})
  berth_compile(berth_${name}_tests)
  target_link_libraries(berth_${name}_tests PRIVATE berth_${name} berth_testing GTest::gmock)
  target_include_directories(berth_${name}_tests PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  # Tests are compiled fast, not well: the code that they test is optimized.
  target_compile_options(berth_${name}_tests PRIVATE -O0)
  set_property(GLOBAL APPEND PROPERTY BERTH_TESTED_LAYERS ${name})
endfunction()

# berth_embed(TARGET IN OUT): makes a C++ raw string literal of the file IN, which the target includes
# as "berth/OUT".
function(berth_embed target in out)
  set(inc ${CMAKE_BINARY_DIR}/generated/berth/${out})
  cmake_path(ABSOLUTE_PATH in BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
  add_custom_command(
    OUTPUT ${inc}
    COMMAND ${CMAKE_COMMAND} -DIN=${in} -DOUT=${inc} -P ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${in} ${CMAKE_SOURCE_DIR}/cmake/embed.cmake)
  target_sources(${target} PRIVATE ${inc})
endfunction()
