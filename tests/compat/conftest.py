"""The scripts are run as programs, never imported: ``import tvm`` works there only."""

collect_ignore = ["scripts"]
