# BERTH_PORTABLE: programs for any Linux with a glibc of 2.34 or later. All but libc and libm is linked
# statically; what berth-server loads besides lies in lib/berth, beside bin/. Everything is compiled as
# ever, so that ccache has it.
option(BERTH_PORTABLE "programs that need nothing installed" OFF)
if(NOT BERTH_PORTABLE)
  return()
endif()

# Debian has spdlog as a shared library only.
add_library(berth_spdlog STATIC src/berth/os/spdlog.cc)
target_compile_definitions(berth_spdlog
  PUBLIC $<TARGET_PROPERTY:spdlog::spdlog,INTERFACE_COMPILE_DEFINITIONS>
         $<TARGET_PROPERTY:fmt::fmt,INTERFACE_COMPILE_DEFINITIONS>
         $<TARGET_PROPERTY:SQLiteCpp,INTERFACE_COMPILE_DEFINITIONS>)
target_link_libraries(berth_spdlog PUBLIC berth_fmt)

set(SHARED_ONES fmt::fmt yaml SQLiteCpp sqlite3 spdlog::spdlog pugixml::pugixml)
set(STATIC_ONES berth_fmt libyaml.a libSQLiteCpp.a libsqlite3.a berth_spdlog libpugixml.a)
get_property(TARGETS DIRECTORY PROPERTY BUILDSYSTEM_TARGETS)
foreach(target ${TARGETS})
  foreach(property LINK_LIBRARIES INTERFACE_LINK_LIBRARIES)
    get_target_property(libraries ${target} ${property})
    if(NOT libraries OR target STREQUAL "berth_spdlog")
      continue()
    endif()
    foreach(shared static IN ZIP_LISTS SHARED_ONES STATIC_ONES)
      list(TRANSFORM libraries REPLACE "^${shared}$" ${static})
    endforeach()
    set_target_properties(${target} PROPERTIES ${property} "${libraries}")
  endforeach()
endforeach()

foreach(program berth berth-server berth-cloud)
  target_sources(${program} PRIVATE src/berth/agent/old_glibc.cc src/berth/agent/old_functions.cc)
  target_link_options(${program} PRIVATE -static-libgcc LINKER:--wrap=hypot LINKER:-s)
endforeach()
foreach(program berth berth-cloud)
  target_link_options(${program} PRIVATE -static-libstdc++ LINKER:--gc-sections)
endforeach()
# As DT_RPATH, which holds for the libraries of its libraries too.
target_link_options(berth-server PRIVATE LINKER:--disable-new-dtags)
set_target_properties(berth-server PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH $ORIGIN/../lib/berth)
