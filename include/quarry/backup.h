// BackupSnapshot: what somebody who copies the files of a running server needs to know of one moment.
//
// The catalogue is handed out as bytes, because on disk it goes on changing: a rebuild binds
// stores to another table, a drop sends one to the trash. Segments are named only: they are append-only, so a copy made
// at any later moment holds everything that they held then, as long as nothing is given back
// (StoreDirectory::PauseMaintenance, and no GC pass or EmptyTrash of the caller's).
//
// Thread-safety: plain data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace quarry {

struct BackupSnapshot {
  struct SmallFile {
    std::string name;  ///< relative to the home: "CATALOGUE-<generation>"
    std::vector<uint8_t> contents;
  };
  struct SegmentFile {
    std::string name;  ///< in the home ("stores/<store>/<segment>.qseg") or in "<data path>/quarry" ("<store>/...")
    std::string path;  ///< where the file is now; a store that goes to the trash meanwhile takes it along
    uint32_t path_number = 0;
  };
  struct DataPath {
    uint32_t path_number = 0;
    std::string path;    ///< as configured: where restored segments of this number were
    std::string marker;  ///< the file to be copied along: "<path>/quarry/PATH"
  };

  std::vector<SmallFile> small_files;
  std::vector<SegmentFile> segments;
  std::vector<DataPath> data_paths;
};

}  // namespace quarry
