"""python -m fedbounds: the command."""

from fedbounds.command_line import main

raise SystemExit(main())
