"""Who has a device, as the file of its lock says; anybody may have written there."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

#: Longest text, and path, of a field that is believed, so that all fits into what is read.
_MOST_CHARACTERS, _MOST_PATH_CHARACTERS = 300, 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class LockOwner:
    """A run that has a device."""

    #: On the desk from which the run was started, and that desk.
    user: str
    host: str
    run_id: str
    #: Such as ``pytest --device=rubikpi``.
    purpose: str
    #: ISO 8601, UTC.
    began_at: str
    #: The account on the device, and the process there.
    account: str
    pid: int
    #: Where that process keeps what is to be restored on the device; "" where it says none.
    state_folder: str = ""

    @property
    def text(self) -> str:
        """Who it is, from where, what for, and since when."""
        if not self.run_id:
            return f"a run of which {self.purpose} does not say whose it is"
        account = "" if self.account == self.user else f", account {self.account} there"
        return f"{self.user} from {self.host} ({self.purpose}){account} since {self.began_at}, process {self.pid}"

    def __post_init__(self) -> None:
        """Believe no more than there can be; what cannot be printed is replaced, and part of a path is another one."""
        if type(self.pid) is not int or not 0 < self.pid < 2**31:  # the system takes 0 for whoever asks
            raise ValueError("pid is no number of a process")
        for name in ("user", "host", "run_id", "purpose", "began_at", "account"):
            if not isinstance(told := getattr(self, name), str):
                raise ValueError(f"{name} is {type(told).__name__}, no text")
            shown = "".join(each if each.isprintable() else "?" for each in told)
            object.__setattr__(self, name, shown[:_MOST_CHARACTERS])
        folder = self.state_folder
        is_path = isinstance(folder, str) and folder.startswith("/") and folder.isprintable()
        object.__setattr__(self, "state_folder", folder if is_path and len(folder) <= _MOST_PATH_CHARACTERS else "")

    def to_plain(self) -> dict[str, Any]:
        """Return the fields by name."""
        return asdict(self)

    @classmethod
    def from_plain(cls, plain: Any) -> LockOwner:
        """Rebuild from `to_plain`, also of a later version that says more; raises ValueError for anything else.

        By hand, since the program that installs the suite on a device reads locks before anything else is there.
        """
        try:
            return cls(**{each.name: plain[each.name] for each in fields(cls) if each.name in plain})
        except (TypeError, IndexError) as error:
            raise ValueError(str(error)) from None


def account_name(uid: int) -> str:
    """Return the name of an account of this machine, or else its number."""
    try:
        import pwd  # only where there is a lock

        return pwd.getpwuid(uid).pw_name
    except (ImportError, KeyError):
        return str(uid)
