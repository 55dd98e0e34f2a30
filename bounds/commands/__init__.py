"""The commands that read and evaluate theory; each is imported only when it is called."""
