"""What the plugin's file shows to the server, and to whatever else is in its process."""

import re

import pytest
from quarry_server.run import run_or_raise
from quarry_server.server import PLUGIN

# What MariaDB looks up when it loads a plugin, and the services of plugin/server/mariadb_services.cc, which it fills in.
FOUND_BY_NAME = {
    "_maria_plugin_interface_version_",
    "_maria_sizeof_struct_st_plugin_",
    "_maria_plugin_declarations_",
    "encryption_scheme_service",
    "encryption_service",
    "my_crypt_service",
    "my_print_error_service",
    "print_check_msg_service",
    "progress_report_service",
    "sql_service",
}
# libstdc++ says of its own templates and types that every library of the process shares them.
OF_THE_STANDARD_LIBRARY = re.compile(r"_Z(Z|T[ISV])?N?K?St|_ZT[IS]P?FvvE$")


@pytest.mark.quarry_only
def test_only_what_the_server_looks_up_can_be_found():
    listed = run_or_raise(["nm", "--dynamic", "--defined-only", "--format=posix", PLUGIN])
    names = {line.split()[0] for line in listed.splitlines()}
    assert {name for name in names if not OF_THE_STANDARD_LIBRARY.match(name)} == FOUND_BY_NAME
