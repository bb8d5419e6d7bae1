// Lines of the server's error log. Names of tables, columns and files are part of them and may hold anything: each call
// writes one line, of printable characters (quarry/printable.h), which begins with "QUARRY: ". None throws.
// Thread-safety: internally synchronised, by the server.
#pragma once

namespace quarry {

[[gnu::format(printf, 1, 2)]] void LogError(const char* format, ...);
[[gnu::format(printf, 1, 2)]] void LogWarning(const char* format, ...);
[[gnu::format(printf, 1, 2)]] void LogInformation(const char* format, ...);

}  // namespace quarry
