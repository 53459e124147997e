"""The commands, one file each; what they share is in `caten.cli`."""
