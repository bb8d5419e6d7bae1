// Codec lz4 on arbitrary bytes.
#include "codec/codec_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  quarry::FuzzCodec(quarry::Codec::kLz4, {data, size});
  return 0;
}
