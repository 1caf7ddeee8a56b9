# The libraries that Berth uses, all of them packages of Debian 12.
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(spdlog REQUIRED)
find_package(SQLiteCpp REQUIRED)
find_package(CLI11 REQUIRED)
find_package(Threads REQUIRED)
find_package(Eigen3 REQUIRED NO_MODULE)
# Berth uses only SHA-256 of libcrypto and links it statically: the shared library would add
# milliseconds to every start. Its symbols are hidden, because another library may bring the shared one.
set(OPENSSL_USE_STATIC_LIBS TRUE)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
add_library(berth_digest_library INTERFACE)
target_link_libraries(berth_digest_library INTERFACE OpenSSL::Crypto)
target_link_options(berth_digest_library INTERFACE LINKER:--exclude-libs,libcrypto.a)

# fmt and spdlog as static libraries: Debian has fmt's for other uses, and spdlog's not at all.
add_library(berth_fmt STATIC src/berth/base/fmt.cc)
target_compile_options(berth_fmt PRIVATE -fPIC -ffunction-sections -fdata-sections)

# Programs and libraries with the property BERTH_STATIC need nothing but libc and libm.
set(IS_STATIC $<BOOL:$<TARGET_PROPERTY:BERTH_STATIC>>)
add_library(berth_text_libraries INTERFACE)
target_link_libraries(berth_text_libraries INTERFACE
  $<IF:${IS_STATIC},berth_fmt,fmt::fmt> $<IF:${IS_STATIC},libyaml.a,yaml>)
add_library(berth_log_library INTERFACE)
add_library(berth_store_libraries INTERFACE)
if(BERTH_PORTABLE)
  add_library(berth_spdlog STATIC src/berth/os/spdlog.cc)
  target_compile_definitions(berth_spdlog
    PUBLIC $<TARGET_PROPERTY:spdlog::spdlog,INTERFACE_COMPILE_DEFINITIONS>)
  target_link_libraries(berth_spdlog PUBLIC berth_fmt)
  set(STATIC_SPDLOG berth_spdlog)
endif()
target_link_libraries(berth_log_library INTERFACE $<IF:${IS_STATIC},${STATIC_SPDLOG},spdlog::spdlog>)
target_link_libraries(berth_store_libraries INTERFACE
  $<IF:${IS_STATIC},libSQLiteCpp.a,SQLiteCpp> $<IF:${IS_STATIC},libsqlite3.a,sqlite3>)
