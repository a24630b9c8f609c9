"""Rehearsal of compiled pipelines on this machine, with an emulator of the cloud."""
