// The strings of quarry-verify's JSON: text that anybody may have chosen.
#include <gtest/gtest.h>

#include "verify_report.h"

namespace quarry::verify {
namespace {

TEST(VerifyJsonTest, WhatATerminalWouldObeyIsEscaped) {
  EXPECT_EQ(JsonString("\x1b\x7f\xc2\x9b\xe2\x80\xa8"), "\"\\u001b\\u007f\\u009b\\u2028\"");
  EXPECT_EQ(JsonString("\xf3\xa0\x81\x81"), "\"\\udb40\\udc41\"");
}

}  // namespace
}  // namespace quarry::verify
