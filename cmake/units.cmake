# berth_units(OUT NAME SOURCES…): what to compile in place of these sources.
#
# Most of a file's compile time goes into the headers that its neighbours read too. So up to eight
# neighbours (files of one storey) are compiled as one unit: a file that includes them. The units name
# their sources relative to src/, so that all clones share what ccache holds. BERTH_UNITS=OFF compiles
# each file apart: for a language server, and to see that each file includes what it needs.
option(BERTH_UNITS "compile neighbouring files together" ON)

function(berth_units out name)
  if(NOT BERTH_UNITS)
    set(${out} ${ARGN} PARENT_SCOPE)
    return()
  endif()
  set(units "")
  set(storey "")
  foreach(source ${ARGN})
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${CMAKE_SOURCE_DIR}/src OUTPUT_VARIABLE path)
    cmake_path(GET path PARENT_PATH folder)
    if(NOT folder STREQUAL storey)
      set(storey ${folder})
      set(count 0)
      set(number 0)
    endif()
    math(EXPR place "${count} % 8")
    math(EXPR count "${count} + 1")
    if(place EQUAL 0)
      math(EXPR number "${number} + 1")
      string(REPLACE "/" "_" unit ${folder})
      set(unit ${CMAKE_BINARY_DIR}/units/${name}/${unit}_${number}.cc)
      list(APPEND units ${unit})
      set(text_${unit} "")
    endif()
    string(APPEND text_${unit} "#include \"${path}\"\n")
  endforeach()
  foreach(unit ${units})
    file(CONFIGURE OUTPUT ${unit} CONTENT "${text_${unit}}" @ONLY)  # written only where it differs
  endforeach()
  set(${out} ${units} PARENT_SCOPE)
endfunction()
