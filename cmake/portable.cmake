# BERTH_PORTABLE: programs for any Linux with a glibc of 2.34 or later. All libraries but libc and libm
# are linked statically; what berth-server loads in addition is in lib/berth, next to bin/. The objects
# are those of other builds, so that ccache has them.
if(NOT BERTH_PORTABLE)
  return()
endif()
foreach(program berth berth-server berth-cloud)
  set_target_properties(${program} PROPERTIES BERTH_STATIC ON)
  target_sources(${program} PRIVATE ${CMAKE_SOURCE_DIR}/src/berth/agent/old_glibc.cc
                                    ${CMAKE_SOURCE_DIR}/src/berth/agent/old_functions.cc)
  target_link_options(${program} PRIVATE -static-libgcc LINKER:--wrap=hypot LINKER:-s)
endforeach()
foreach(program berth berth-cloud)
  target_link_options(${program} PRIVATE -static-libstdc++ LINKER:--gc-sections)
endforeach()
# As DT_RPATH, which holds for the libraries of its libraries too.
target_link_options(berth-server PRIVATE LINKER:--disable-new-dtags)
set_target_properties(berth-server PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH $ORIGIN/../lib/berth)
