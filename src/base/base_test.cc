// The helpers of base, each for what its header promises.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <thread>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/checksum.h"
#include "base/coding.h"
#include "base/event_count.h"
#include "base/mutex.h"
#include "base/unique_fd.h"
#include "quarry/options.h"
#include "quarry/status.h"

namespace quarry {
namespace {

TEST(CodingTest, IsLittleEndian) {
  ByteWriter writer;
  writer.U8(0x01);
  writer.U16(0x0302);
  writer.U32(0x07060504);
  writer.U64(0x0f0e0d0c0b0a0908);
  writer.String("ab");
  const std::vector<uint8_t> expected = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 2, 0, 0, 0, 'a', 'b'};
  EXPECT_EQ(std::vector<uint8_t>(writer.bytes().begin(), writer.bytes().end()), expected);

  ByteReader reader(expected);
  EXPECT_EQ(reader.U8(), 0x01);
  EXPECT_EQ(reader.U16(), 0x0302);
  EXPECT_EQ(reader.U32(), 0x07060504U);
  EXPECT_EQ(reader.U64(), 0x0f0e0d0c0b0a0908U);
  EXPECT_EQ(reader.String(2), "ab");
  EXPECT_TRUE(reader.ok());
  EXPECT_EQ(reader.remaining(), 0U);
}

TEST(CodingTest, AReadPastTheEndFailsForGood) {
  const std::vector<uint8_t> three = {1, 2, 3};
  ByteReader reader(three);
  EXPECT_EQ(reader.U32(), 0U);
  EXPECT_FALSE(reader.ok());
  EXPECT_EQ(reader.U8(), 0) << "nothing is read after a failure";
  EXPECT_EQ(reader.position(), 0U);
  EXPECT_TRUE(reader.Bytes(1).empty());
}

TEST(CodingTest, LengthsAreComparedBeforeTheyAreBelieved) {
  ByteWriter writer;
  writer.U32(0xffffffff);
  {
    ByteReader reader(writer.bytes());
    EXPECT_EQ(reader.String(SIZE_MAX), "");
    EXPECT_FALSE(reader.ok());
  }
  {
    ByteReader reader(writer.bytes());
    EXPECT_EQ(reader.Count(8), 0U);
    EXPECT_FALSE(reader.ok());
  }
  ByteWriter text;
  text.String("four");
  ByteReader reader(text.bytes());
  EXPECT_EQ(reader.String(3), "") << "the bytes are there, but longer than allowed";
  EXPECT_FALSE(reader.ok());
}

TEST(ChecksumTest, IsXxh3WithSeedZero) {
  // The value for no bytes at all, from the specification of XXH3.
  EXPECT_EQ(Checksum64({}), 0x2d06800538d394c2ULL);
  const std::vector<uint8_t> abc = {'a', 'b', 'c'};
  EXPECT_EQ(Checksum64(abc), 0x78af5f94892f3950ULL);
  EXPECT_EQ(Checksum32(abc), 0x892f3950U);
}

TEST(AlignedBufferTest, IsAlignedRoundedAndMovable) {
  AlignedBuffer buffer(1);
  ASSERT_EQ(buffer.size(), 4096U);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % 4096, 0U);
  buffer.FillZero();
  buffer.data()[4095] = 7;
  AlignedBuffer moved(std::move(buffer));
  EXPECT_EQ(moved.data()[4095], 7);
  AlignedBuffer assigned(8192);
  assigned = std::move(moved);
  EXPECT_EQ(assigned.size(), 4096U);
  EXPECT_EQ(assigned.span()[4095], 7);
  EXPECT_TRUE(AlignedBuffer(0).empty());
  EXPECT_THROW(AlignedBuffer(SIZE_MAX), std::bad_alloc);
}

TEST(UniqueFdTest, ClosesOnceAndReportsCloseErrors) {
  const int raw = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ASSERT_GE(raw, 0);
  {
    unique_fd fd(raw);
    unique_fd moved(std::move(fd));
    EXPECT_EQ(moved.get(), raw);
  }
  EXPECT_EQ(::fcntl(raw, F_GETFD), -1) << "closed by the destructor";
  unique_fd stale(raw);
  EXPECT_EQ(stale.Close(), EBADF);
  EXPECT_FALSE(stale.valid());
  EXPECT_EQ(stale.Close(), 0) << "nothing is left to close";
}

TEST(MutexTest, ExcludesAndWakes) {
  Mutex mutex;
  CondVar condition;
  uint64_t sum = 0;
  int done = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        MutexLock lock(mutex);
        ++sum;
      }
      MutexLock lock(mutex);
      ++done;
      condition.NotifyAll();
    });
  }
  {
    MutexLock lock(mutex);
    while (done < 4) condition.Wait(mutex);
    EXPECT_EQ(sum, 4000U);
  }
  for (std::thread& thread : threads) thread.join();
  MutexLock lock(mutex);
  EXPECT_FALSE(condition.WaitFor(mutex, std::chrono::microseconds(1)));
}

TEST(EventCountTest, DoesNotWaitForWhatHasHappened) {
  EventCount events;
  const uint32_t seen = events.Current();
  events.NotifyOne();
  events.AwaitChange(seen);
  EXPECT_NE(events.Current(), seen);
}

TEST(EventCountTest, TwoThreadsThatWaitForEachOtherMissNothing) {
  constexpr uint64_t kTurns = 20000;
  EventCount events;
  std::atomic<uint64_t> turn{0};
  std::vector<uint64_t> written;  // by whose turn it is: only the order of turns keeps it whole
  const auto play = [&](uint64_t parity) {
    for (uint64_t mine = parity; mine < kTurns; mine += 2) {
      while (true) {
        const uint32_t seen = events.Current();
        if (turn.load(std::memory_order_acquire) == mine) break;
        events.AwaitChange(seen);
      }
      written.push_back(mine);
      turn.store(mine + 1, std::memory_order_release);
      events.NotifyAll();
    }
  };
  std::thread other(play, 1);
  play(0);
  other.join();
  ASSERT_EQ(written.size(), kTurns);
  EXPECT_TRUE(std::is_sorted(written.begin(), written.end()));
}

TEST(EventCountTest, NotifyAllWakesEverybodyAndNotifyOneAtLeastOne) {
  EventCount events;
  std::atomic<int> woken{0};
  std::vector<std::thread> threads;
  const uint32_t first = events.Current();
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      events.AwaitChange(first);
      ++woken;
    });
  }
  events.NotifyAll();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(woken, 4);
  const uint32_t second = events.Current();
  std::thread last([&] {
    events.AwaitChange(second);
    ++woken;
  });
  events.NotifyOne();
  last.join();
  EXPECT_EQ(woken, 5);
}

TEST(StatusTest, MapsErrnoAndNamesWhatWentWrong) {
  EXPECT_EQ(Status::FromErrno(ENOSPC, "write", "/x").code(), StatusCode::kNoSpace);
  EXPECT_EQ(Status::FromErrno(EDQUOT, "write", "/x").code(), StatusCode::kNoSpace);
  EXPECT_EQ(Status::FromErrno(ENOENT, "open", "/x").code(), StatusCode::kNotFound);
  EXPECT_EQ(Status::FromErrno(EEXIST, "create", "/x").code(), StatusCode::kAlreadyExists);
  const Status failed = Status::FromErrno(EIO, "fdatasync", "/x/y");
  EXPECT_EQ(failed.code(), StatusCode::kIoError);
  EXPECT_EQ(failed.system_errno(), EIO);
  EXPECT_EQ(failed.ToString(), "i/o error: fdatasync /x/y: Input/output error (errno 5)");
  EXPECT_EQ(Status::Corruption(7, 2, 4096, "part 3 checksum mismatch").ToString(),
            "corruption: store 7 segment 2 offset 4096: part 3 checksum mismatch");
  EXPECT_EQ(Status::Ok().ToString(), "ok");
}

Result<int> Half(int number) {
  if (number % 2 != 0) return Status::InvalidArgument(std::to_string(number) + " is odd");
  return number / 2;
}

Result<int> Quarter(int number) {
  QUARRY_TRY_ASSIGN(const int half, Half(number));
  return Half(half);
}

TEST(StatusTest, ResultsPassErrorsOn) {
  EXPECT_EQ(Quarter(8).value(), 2);
  EXPECT_EQ(Quarter(6).status().message(), "3 is odd");
  EXPECT_EQ(Quarter(5).status().message(), "5 is odd");
}

TEST(OptionsTest, CodecsGoByNameInAnyCase) {
  for (const Codec codec : {Codec::kNone, Codec::kLz4, Codec::kZstd}) {
    EXPECT_EQ(ParseCodec(CodecName(codec)).value(), codec);
  }
  EXPECT_EQ(ParseCodec("LZ4").value(), Codec::kLz4);
  EXPECT_EQ(ParseCodec("snappy").status().ToString(),
            "invalid argument: codec 'snappy' is unknown; allowed are none, lz4 and zstd");
  EXPECT_FALSE(ParseCodec("").ok());
}

}  // namespace
}  // namespace quarry
