// libpq is opened only when a database is asked for: it brings a dozen shared libraries (TLS,
// Kerberos, LDAP), which must not slow every start of berth. Only its header is needed to build.
#pragma once

#include <postgresql/libpq-fe.h>

#include "berth/base/result.h"

namespace berth::store {

#define BERTH_LIBPQ(each)                                                                       \
  each(PQbackendPID) each(PQclear) each(PQcmdTuples) each(PQconnectPoll)                        \
      each(PQconnectStartParams) each(PQconnectionNeedsPassword) each(PQconninfoFree)           \
          each(PQconninfoParse) each(PQconsumeInput) each(PQenterPipelineMode)                  \
              each(PQerrorMessage) each(PQexitPipelineMode) each(PQfinish) each(PQflush)        \
                  each(PQfreemem) each(PQgetResult) each(PQgetisnull) each(PQgetlength)         \
                      each(PQgetvalue) each(PQisBusy) each(PQnfields) each(PQntuples)           \
                          each(PQparameterStatus) each(PQpipelineSync) each(PQresultErrorField) \
                              each(PQresultErrorMessage) each(PQresultStatus) each(PQsendQuery) \
                                  each(PQsendQueryParams) each(PQserverVersion)                 \
                                      each(PQsetErrorVerbosity) each(PQsetNoticeProcessor)      \
                                          each(PQsetnonblocking) each(PQsocket) each(PQstatus)

/// The functions of libpq under their own names.
struct Libpq {
#define BERTH_DECLARE(name) decltype(&::name) name = nullptr;
  BERTH_LIBPQ(BERTH_DECLARE)
#undef BERTH_DECLARE
};

/// The library is loaded once and never unloaded. impossible: it is not installed.
Result<const Libpq*> libpq();

}  // namespace berth::store
