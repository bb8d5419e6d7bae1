"""Experiments whose client is a program of lab/java, on private servers of the run."""

from __future__ import annotations

from abc import abstractmethod

from quarry_server.server import MARIADB

from ..design.request import Request
from ..load import java
from ..run.experiment import Experiment
from ..servers.lab_server import file_sha256


class JavaExperiment(Experiment):
    @abstractmethod
    def needs_plugin(self, request: Request) -> bool:
        """Whether one of the request's variants is QUARRY."""

    def identity(self, request: Request) -> dict:
        """A changed plugin starts a new run."""
        return super().identity(request) | {"plugin_sha256": file_sha256(request.plugin) if request.plugin and self.needs_plugin(request) else None}

    def needs(self, request: Request) -> list[str]:
        missing = java.missing_tools()
        if not (MARIADB / "usr" / "sbin" / "mariadbd").exists():
            missing.append(f"a MariaDB server in {MARIADB} (scripts/fetch-mariadb gets one)")
        if self.needs_plugin(request) and not (request.plugin and request.plugin.exists()):
            missing.append(f"a plugin at {request.plugin} ('make plugin' builds it)")
        return missing
