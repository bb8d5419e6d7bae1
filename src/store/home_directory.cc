#include "store/home_directory.h"

#include <algorithm>

#include "context/catalogue_file.h"
#include "context/layout.h"
#include "quarry/store.h"

namespace quarry {

Result<bool> IsHome(Env* env, const std::string& path) {
  const Result<std::vector<std::string>> names = env->ListDirectory(path);
  if (names.status().code() == StatusCode::kNotFound) return false;
  QUARRY_TRY(names.status());
  return std::any_of(names->begin(), names->end(), [](const std::string& name) {
    return ParseCatalogueFileName(name).has_value() || name == kUnreleasedFileName;
  });
}

Result<bool> StoreDirectory::IsHome(const std::string& path) { return quarry::IsHome(Env::Posix(), path); }

}  // namespace quarry
