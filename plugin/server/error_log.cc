// See error_log.h.
#include "server/error_log.h"

#include <cstdarg>
#include <cstdio>
#include <string>

#include "quarry/printable.h"
#include "server/mariadb_compat.h"

#include <log.h>

namespace quarry {

namespace {

std::string Format(const char* format, va_list arguments) {
  va_list again;
  va_copy(again, arguments);
  const int size = vsnprintf(nullptr, 0, format, arguments);
  std::string text(size > 0 ? static_cast<size_t>(size) : 0, '\0');
  if (size > 0) vsnprintf(text.data(), text.size() + 1, format, again);
  va_end(again);
  return Printable(text);
}

}  // namespace

void LogError(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  sql_print_error("QUARRY: %s", Format(format, arguments).c_str());
  va_end(arguments);
}

void LogWarning(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  sql_print_warning("QUARRY: %s", Format(format, arguments).c_str());
  va_end(arguments);
}

void LogInformation(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  sql_print_information("QUARRY: %s", Format(format, arguments).c_str());
  va_end(arguments);
}

}  // namespace quarry
