"""Checks of ``sluice doctor``: packages, machine, disks, devices, models."""
