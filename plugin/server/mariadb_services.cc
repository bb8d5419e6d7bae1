// The server's plugin services that Quarry calls. The server finds these symbols when it loads the plugin, compares
// the version in them with its own, and puts the address of the service's function table in its place.
// (MariaDB's libmysqlservices.a does the same; defining the few that are used spares the library.)
#include <my_global.h>
// my_global.h must be the server's first header.
#include <mysql/service_print_check_msg.h>
#include <mysql/services.h>
#include <service_versions.h>

#pragma GCC visibility push(default)
extern "C" {
encryption_service_st* encryption_service = reinterpret_cast<encryption_service_st*>(VERSION_encryption);
encryption_scheme_service_st* encryption_scheme_service =
    reinterpret_cast<encryption_scheme_service_st*>(VERSION_encryption_scheme);
my_crypt_service_st* my_crypt_service = reinterpret_cast<my_crypt_service_st*>(VERSION_my_crypt);
my_print_error_service_st* my_print_error_service =
    reinterpret_cast<my_print_error_service_st*>(VERSION_my_print_error);
sql_service_st* sql_service = reinterpret_cast<sql_service_st*>(VERSION_sql_service);
print_check_msg_service_st* print_check_msg_service =
    reinterpret_cast<print_check_msg_service_st*>(VERSION_print_check_msg);
progress_report_service_st* progress_report_service =
    reinterpret_cast<progress_report_service_st*>(VERSION_progress_report);
}
#pragma GCC visibility pop
