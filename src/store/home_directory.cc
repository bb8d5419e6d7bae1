#include "store/home_directory.h"

#include "io/path.h"
#include "quarry/store.h"
#include "store/layout.h"

namespace quarry {

Result<bool> IsHome(Env* env, const std::string& path) { return env->FileExists(JoinPath(path, kDirectoryFileName)); }

Result<bool> StoreDirectory::IsHome(const std::string& path) { return quarry::IsHome(Env::Posix(), path); }

}  // namespace quarry
