#include "quarry/options.h"

#include <algorithm>

namespace quarry {

namespace {

// Not tolower: the server may run under any locale.
char LowerAscii(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

const char* CodecName(Codec codec) {
  switch (codec) {
    case Codec::kNone:
      return "none";
    case Codec::kLz4:
      return "lz4";
    case Codec::kZstd:
      return "zstd";
  }
  return "unknown";
}

Result<Codec> ParseCodec(const std::string& name) {
  std::string lower = name;
  std::transform(lower.begin(), lower.end(), lower.begin(), LowerAscii);
  for (const Codec codec : {Codec::kNone, Codec::kLz4, Codec::kZstd}) {
    if (lower == CodecName(codec)) return codec;
  }
  return Status::InvalidArgument("codec '" + name + "' is unknown; allowed are none, lz4 and zstd");
}

}  // namespace quarry
