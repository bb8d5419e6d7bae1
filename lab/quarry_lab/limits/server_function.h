// What the functions of a server in this directory have in common: how their arguments are read and refused.
//
// Thread-safety: pure functions of what the server hands to the caller.
#pragma once

#include <mysql.h>

#include <cstdint>
#include <cstdio>

/// The number, an INT_RESULT, at `index`; 0 for NULL, and for what is no constant while the function is prepared.
inline uint64_t NumberArgument(const UDF_ARGS* args, unsigned index) {
  return args->args[index] == nullptr ? 0
                                      : static_cast<uint64_t>(*reinterpret_cast<const long long*>(args->args[index]));
}

/// The whole of an _init of a function without arguments, whose result is another one each time. 1: it was given some.
inline my_bool PrepareWithoutArguments(UDF_INIT* init, const UDF_ARGS* args, char* message, const char* name) {
  if (args->arg_count != 0) {
    (void)std::snprintf(message, MYSQL_ERRMSG_SIZE, "%s() takes nothing", name);
    return 1;
  }
  init->maybe_null = 1;
  init->const_item = 0;
  return 0;
}
