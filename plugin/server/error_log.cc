// See error_log.h.
#include "server/error_log.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <new>
#include <span>
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

void Print(sql_print_message_func print, const char* format, va_list arguments) {
  va_list again;
  va_copy(again, arguments);
  try {
    print("QUARRY: %s", Format(format, arguments).c_str());
  } catch (const std::bad_alloc&) {
    // As much as needs no memory.
    char text[512];
    vsnprintf(text, sizeof(text), format, again);
    for (char& c : std::span(text, strlen(text))) {
      if (c < ' ' || c > '~') c = '?';
    }
    print("QUARRY: %s", text);
  }
  va_end(again);
}

}  // namespace

void LogError(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  Print(sql_print_error, format, arguments);
  va_end(arguments);
}

void LogWarning(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  Print(sql_print_warning, format, arguments);
  va_end(arguments);
}

void LogInformation(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  Print(sql_print_information, format, arguments);
  va_end(arguments);
}

}  // namespace quarry
