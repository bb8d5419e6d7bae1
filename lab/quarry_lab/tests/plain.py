"""The smallest experiment on tables, for tests of what runs, resumes and records one: it judges and draws nothing."""

from quarry_lab.design.plan import OPERATIONS
from quarry_lab.design.request import Request
from quarry_lab.experiments.table_experiment import TableExperiment


class Plain(TableExperiment):
    name = "plain"
    title = "tables of one size, without a finding"
    reference = "innodb"

    def default_request(self) -> Request:
        return Request(self.name, list(OPERATIONS), [4096], [2], ["innodb", "quarry"])

    def verdicts(self, run):
        return []

    def figures(self, run):
        return {}
