# The man pages (of commands from what berth says of itself, of formats from docs/) and the shells'
# completions.
if(NOT BERTH_SANITIZE)
  file(GLOB MANUAL_DOCUMENTS CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/docs/reference/*.md)
  find_program(SYSTEM_PYTHON3 python3 PATHS /usr/bin NO_DEFAULT_PATH REQUIRED)
  add_custom_command(
    OUTPUT ${CMAKE_BINARY_DIR}/man/stamp
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${CMAKE_BINARY_DIR}/man
    COMMAND ${SYSTEM_PYTHON3} ${CMAKE_SOURCE_DIR}/tools/man.py $<TARGET_FILE:berth> ${CMAKE_BINARY_DIR}/man
    COMMAND ${CMAKE_COMMAND} -E touch ${CMAKE_BINARY_DIR}/man/stamp
    DEPENDS berth ${CMAKE_SOURCE_DIR}/tools/man.py ${CMAKE_SOURCE_DIR}/README.md
            ${MANUAL_DOCUMENTS})
  add_custom_target(man ALL DEPENDS ${CMAKE_BINARY_DIR}/man/stamp)
  install(DIRECTORY ${CMAKE_BINARY_DIR}/man/ DESTINATION share/man OPTIONAL PATTERN stamp EXCLUDE)
endif()
set(COMPLETIONS src/berth/cli/completion)
install(FILES ${COMPLETIONS}/berth.bash RENAME berth DESTINATION share/bash-completion/completions)
install(FILES ${COMPLETIONS}/berth.zsh RENAME _berth DESTINATION share/zsh/vendor-completions)
install(FILES ${COMPLETIONS}/berth.fish DESTINATION share/fish/vendor_completions.d)
