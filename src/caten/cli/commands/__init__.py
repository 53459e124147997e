"""The commands, one file each; shared code is in `caten.cli`."""
