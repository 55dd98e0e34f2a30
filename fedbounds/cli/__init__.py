"""The commands of `fedbounds`; each module is imported only when its command is called."""
