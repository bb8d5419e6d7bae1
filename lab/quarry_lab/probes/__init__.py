"""Looks at the machine: devices, processors, noise, links."""
