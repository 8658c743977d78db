"""The version of this release, as the package, the server and the command topic show it."""

VERSION = "0.1.0"
