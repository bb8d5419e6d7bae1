// See session_time.h.
#include "server/session_time.h"

#include <sql_class.h>
#include <tztime.h>

namespace quarry {

MYSQL_TIME SessionTime(THD* thd, uint64_t utc_seconds) {
  MYSQL_TIME time;
  thd->variables.time_zone->gmt_sec_to_TIME(&time, static_cast<my_time_t>(utc_seconds));
  return time;
}

std::string SessionTimeText(THD* thd, uint64_t utc_seconds) {
  const MYSQL_TIME time = SessionTime(thd, utc_seconds);
  char text[MAX_DATE_STRING_REP_LENGTH];
  return std::string(text, static_cast<size_t>(my_TIME_to_str(&time, text, 0)));
}

}  // namespace quarry
