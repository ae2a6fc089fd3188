"""What can go wrong with the development database.

DevDatabaseError
├── BinariesNotFound      no PostgreSQL of the wanted version on this machine
├── AccountUnavailable    root has no unprivileged account to run PostgreSQL as
├── DirectoryRefused      a directory or file of ours cannot be made, read or locked
├── VersionMismatch       the data belong to another major version
├── StartFailed           PostgreSQL did not get ready
└── ServerGone            a server that was ready has ended

Every message names the thing and ends with what to do next, so a caller prints it as it is.
"""


class DevDatabaseError(Exception):
    """Base of everything that devdb raises on purpose."""


class BinariesNotFound(DevDatabaseError):
    """No usable PostgreSQL programs of the wanted version."""


class AccountUnavailable(DevDatabaseError):
    """PostgreSQL refuses to run as root, and there is no account to run it as."""


class DirectoryRefused(DevDatabaseError):
    """A directory or file cannot be used, and devdb does not change what it did not make."""


class VersionMismatch(DevDatabaseError):
    """The data directory was made by another major version of PostgreSQL."""


class StartFailed(DevDatabaseError):
    """PostgreSQL, or one of its tools, ended early or took too long; the log's tail is included."""


class ServerGone(DevDatabaseError):
    """The server that this process was using has ended."""
