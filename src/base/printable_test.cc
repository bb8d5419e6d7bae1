// What Printable leaves of text that anybody may have chosen.
#include "quarry/printable.h"

#include <gtest/gtest.h>

namespace quarry {
namespace {

TEST(PrintableTest, PlainTextStaysAsItIs) {
  for (const char* const text :
       {"", "db/t", "t\xc3\xa4glich", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "`a`.`b` %s %n \\", "\xe2\x80\x94"}) {
    EXPECT_EQ(Printable(text), text);
  }
}

TEST(PrintableTest, WhatALogOrATerminalWouldObeyIsSpelt) {
  EXPECT_EQ(Printable("a\nb\rc\td"), "a\\x0ab\\x0dc\\x09d");
  EXPECT_EQ(Printable("\x1b[2J\x07\x7f"), "\\x1b[2J\\x07\\x7f");
  EXPECT_EQ(Printable(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(Printable("\xc2\x9b"
                      "31m\xc2\x85"),
            "\\u009b31m\\u0085");
  EXPECT_EQ(Printable("\xf3\xa0\x81\x81"), "\\U000e0041");
  EXPECT_EQ(Printable("\xe2\x80\xa8\xe2\x80\xa9"), "\\u2028\\u2029");
  for (const char* const mark :
       {"\xe2\x80\x8e", "\xe2\x80\xae", "\xe2\x81\xa6", "\xd8\x9c", "\xef\xbb\xbf", "\xe2\x80\x8b"}) {
    EXPECT_EQ(Printable(mark).substr(0, 2), "\\u") << mark;
  }
}

TEST(PrintableTest, BytesThatAreNoTextAreSpelt) {
  EXPECT_EQ(Printable("\xff\xfe"), "\\xff\\xfe");
  EXPECT_EQ(Printable("\xc0\xaf"), "\\xc0\\xaf") << "an overlong form";
  EXPECT_EQ(Printable("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "half of a pair";
  EXPECT_EQ(Printable("\xe2\x80"), "\\xe2\\x80") << "cut off";
  EXPECT_EQ(Printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80") << "beyond Unicode";
}

}  // namespace
}  // namespace quarry
