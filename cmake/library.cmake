# libberth: what include/berth declares is all that can be seen. The shared and the static library are
# made of the objects that the programs are made of.
include(CMakePackageConfigHelpers)

if(BERTH_SANITIZE)
  return()
endif()

set(LIBERTH_SYMBOLS ${CMAKE_SOURCE_DIR}/src/berth/library/berth.map)
set(LIBERTH_OBJECTS "")
foreach(layer base resource topology placement fleet schedule ignore os fileset machine exec store
        cluster agent remote flow experiment run engine render api library)
  list(APPEND LIBERTH_OBJECTS $<TARGET_OBJECTS:berth_${layer}>)
endforeach()
file(WRITE ${CMAKE_BINARY_DIR}/generated/nothing.cc "")

add_library(libberth SHARED ${LIBERTH_OBJECTS} ${CMAKE_BINARY_DIR}/generated/nothing.cc)
target_link_libraries(libberth PRIVATE berth_text_libraries berth_store_libraries berth_log_library
                                       berth_digest_library Threads::Threads)
target_link_options(libberth PRIVATE LINKER:--version-script=${LIBERTH_SYMBOLS} LINKER:--gc-sections
                    LINKER:-z,defs)
set_target_properties(libberth PROPERTIES OUTPUT_NAME berth VERSION ${PROJECT_VERSION}
                      SOVERSION ${PROJECT_VERSION_MAJOR} EXPORT_NAME berth
                      LINK_DEPENDS ${LIBERTH_SYMBOLS}
                      LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})

add_library(libberth_static STATIC ${LIBERTH_OBJECTS} ${CMAKE_BINARY_DIR}/generated/nothing.cc)
set_target_properties(libberth_static PROPERTIES OUTPUT_NAME berth EXPORT_NAME berth_static
                      ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
# A program that links it needs these by their names alone, of the system's development packages.
set(LIBERTH_PRIVATE_LIBS fmt yaml SQLiteCpp sqlite3 spdlog crypto pthread dl m)
target_link_libraries(libberth_static INTERFACE ${LIBERTH_PRIVATE_LIBS})

foreach(LIBRARY libberth libberth_static)
  set_target_properties(${LIBRARY} PROPERTIES LINKER_LANGUAGE CXX)
  target_include_directories(${LIBRARY} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(${LIBRARY} INTERFACE $<INSTALL_INTERFACE:cxx_std_23>)
endforeach()

list(TRANSFORM LIBERTH_PRIVATE_LIBS PREPEND "-l" OUTPUT_VARIABLE PC_LIBS_PRIVATE)
list(JOIN PC_LIBS_PRIVATE " " PC_LIBS_PRIVATE)
file(RELATIVE_PATH PREFIX_FROM_PC "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
configure_file(${CMAKE_SOURCE_DIR}/cmake/berth.pc.in ${CMAKE_BINARY_DIR}/berth.pc @ONLY)
set(PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/berth)
configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/berth-config.cmake.in ${CMAKE_BINARY_DIR}/berth-config.cmake
                              INSTALL_DESTINATION ${PACKAGE_DIR})
# Until 1.0 a minor version may change what a program compiled against.
write_basic_package_version_file(${CMAKE_BINARY_DIR}/berth-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)

install(TARGETS libberth EXPORT berth-shared
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT development)
install(TARGETS libberth_static EXPORT berth-static
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/berth DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
install(FILES ${CMAKE_SOURCE_DIR}/src/berth/placement/berth_placement.h COMPONENT development
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/berth/placement)
install(EXPORT berth-shared NAMESPACE berth:: DESTINATION ${PACKAGE_DIR} COMPONENT development)
install(EXPORT berth-static NAMESPACE berth:: DESTINATION ${PACKAGE_DIR} COMPONENT development)
install(FILES ${CMAKE_BINARY_DIR}/berth-config.cmake ${CMAKE_BINARY_DIR}/berth-config-version.cmake
        DESTINATION ${PACKAGE_DIR} COMPONENT development)
install(FILES ${CMAKE_BINARY_DIR}/berth.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
        COMPONENT development)
