// MariaDB's internal headers, in the one order and with the one set of defines that work outside the server's tree.
// Every file of the plugin that needs the server includes this first, after nothing but the standard library.
//
// Invariants:
//  - Standard headers that the plugin uses come before the server's, whose macros would break them.
//  - Nothing here depends on a patch release: a plugin is loaded only by the very version it was built for.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#ifndef MYSQL_SERVER
#define MYSQL_SERVER 1
#endif

#include <my_global.h>
// my_global.h must be the server's first header.
#include <create_options.h>
#include <field.h>
#include <handler.h>
#include <item.h>
#include <key.h>
#include <mysql/plugin.h>
#include <mysqld_error.h>
#include <sql_class.h>
#include <sql_table.h>
#include <table.h>

// InnoDB's own option struct and handler class: the child that Quarry wraps. The header takes for granted what
// InnoDB's other headers declare, which are not part of the headers that Quarry needs.
struct dict_table_t;
struct dict_index_t;
struct dict_v_col_t;
struct dict_s_col_t;
struct dict_vcol_templ_t;
struct dict_add_v_col_t;
struct fts_result_t;
enum dberr_t : int;
enum dict_err_ignore_t : int;
enum page_cur_mode_t : int;
using ulint = size_t;
using ibool = ulint;
#ifndef MY_ATTRIBUTE
#define MY_ATTRIBUTE __attribute__
#endif
#include <ha_innodb.h>
