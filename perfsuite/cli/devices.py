"""``perfsuite devices``: the parsers of its actions, whose modules are imported when one is run."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from perfsuite.cli.command_help import Commands, add_command, add_option, add_options, add_quiet, add_run
from perfsuite.cli.run_options import BUNDLE_OPTIONS
from perfsuite.device.reach import TAKEN

_DEVICE = ("device NAME", "a device of 'perfsuite devices list'")


def add_parser(commands: Commands) -> None:
    """Add the subcommand and its actions, of which ``list`` is run where none is named."""
    parser = add_command(
        commands,
        "devices",
        about="""
        A device is a profile, a small TOML file. The first of a name is used: from ./devices, then your own folder,
        then those that ship. Without an action, 'list' runs.
        """,
        examples={
            "perfsuite devices add desk-pi --like rubikpi --address user@192.168.1.20": "a board on the desk",
            "perfsuite devices doctor desk-pi": "before the first run, and when results are noisy",
        },
        writes="profiles (add, probe); files on the device (setup)",
        see=("docs/how-to/add-a-device.md", "docs/reference/profiles.md"),
        exits={1: "'doctor' found something that makes measuring impossible"},
    )
    actions = parser.add_subparsers(metavar="ACTION", dest="devices_action")
    _add_profile_actions(actions)
    _add_device_actions(actions)
    parser.set_defaults(run=_action("profiles", "list_profiles"), json=False)


def _action(module: str, function: str) -> Callable[[argparse.Namespace], int]:
    def run(options: argparse.Namespace) -> int:
        return int(getattr(import_module(f"perfsuite.cli.devices_{module}"), function)(options))

    return run


def _add_profile_actions(actions: Commands) -> None:
    add_command(
        actions,
        "list",
        summary="list the devices and how each is reached",
        about="Broken profiles are listed with what is wrong.",
        examples={"perfsuite devices list --json": "as JSON"},
        run=_action("profiles", "list_profiles"),
    )
    add_command(
        actions,
        "show",
        summary="show a profile, with the file of each value",
        about="Theoretical peaks follow, with their sources.",
        examples={"perfsuite devices show rubikpi": "a board"},
        options=[_DEVICE],
        run=_action("profiles", "show_profile"),
    )
    add_command(
        actions,
        "remove",
        summary="remove a profile of your own",
        about="What was installed on the device stays there, and so do baselines and runs.",
        examples={"perfsuite devices remove desk-pi": "the file goes"},
        writes="removes the profile's file",
        options=[_DEVICE],
        run=_action("profiles", "remove_profile"),
    )
    add = add_command(
        actions,
        "add",
        summary="write a profile of your own, based on another one",
        about="Nothing is sent to the device. Without --address, ssh uses the profile's name and adb the only device.",
        examples={
            "perfsuite devices add desk-pi --like rubikpi --address user@192.168.1.20": "a board on the desk",
            "perfsuite devices add phone --like pixel8pro --address ssh:u0_a1@phone:8022": "Termux's sshd",
        },
        writes="devices/NAME.toml",
        options=[
            ("name NAME", "name of the new device"),
            ("--like DEVICE", "profile to extend (default generic-ssh)", None, "generic-ssh"),
        ],
    )
    add_options(
        add.add_argument_group("connection"),
        ("--address ADDRESS", f"how to reach it: {TAKEN} (default: as the profile of --like)"),
        ("--identity-file FILE", "private key, for ssh (default: OpenSSH's)", Path),
        ("--known-hosts-file FILE", "known hosts, for ssh (default: OpenSSH's)", Path),
        ("--home PATH", "folder on the device to install into"),
    )
    add_option(add, "--description TEXT", "what it is, in one line")
    add_options(
        add.add_mutually_exclusive_group(),
        ("--user", "write it into your own folder of profiles"),
        ("--folder DIR", "write it into this folder (default ./devices)", Path),
    )
    add_option(add, "--force", "replace a profile of that name")
    add_run(add, _action("profiles", "add_profile"))


def _add_device_actions(actions: Commands) -> None:
    add_command(
        actions,
        "probe",
        summary="read a device's hardware and write its profile",
        about="""
        A shell script reads files there; nothing is written or installed. Comments say where each value is from. A new
        NAME needs --address.
        """,
        examples={
            "perfsuite devices probe desk-pi --address ssh:user@desk-pi": "a new board",
            "perfsuite devices probe phone --address adb": "the only device of adb",
        },
        writes="devices/NAME.toml",
        options=[
            ("device [NAME]", "name of the device"),
            ("--address ADDRESS", f"how to reach the device: {TAKEN} (default: the profile's)"),
            ("-o --output FILE", "file to write (default devices/NAME.toml)", Path),
            ("--force", "replace the file"),
        ],
        run=_action("profiles", "probe_device"),
    )
    setup = add_command(
        actions,
        "setup",
        summary="install on a device what measures there",
        about="""
        The device gets a bundle of 10 to 40 MB, compiled here. It needs a POSIX shell with sha256sum, but no Python,
        compiler or root. The old bundle stays in use until the new one works.
        """,
        examples={
            "perfsuite devices setup rubikpi": "once, and after each update",
            "perfsuite devices setup rubikpi --llama ../llama.cpp": "your checkout",
        },
        writes="files below [reach] home on the device",
        options=[_DEVICE],
    )
    add_options(
        setup.add_argument_group("the bundle"),
        ("--bundle FOLDER", "send this bundle of 'perfsuite bundle -o'", Path),
        *BUNDLE_OPTIONS,
        ("--opencl", "include llama.cpp's OpenCL backend (default: if the device has OpenCL)"),
    )
    add_option(setup, "--remove", "remove all that setup installed there")
    add_run(setup, _action("setup", "set_up"))
    add_quiet(setup)
    add_command(
        actions,
        "doctor",
        summary="check what makes measurements on a device noisy or impossible",
        about="Each line is ok, warn or fail, with what was seen and how to fix it. Nothing is changed.",
        examples={
            "perfsuite devices doctor rubikpi": "before the first run, and when results are noisy",
            "perfsuite devices doctor host --json": "this machine, for a program",
        },
        exits={1: "something fails"},
        options=[_DEVICE],
        run=_action("doctor", "tell_findings"),
    )
    add_command(
        actions,
        "unlock",
        summary="restore what a killed run had set, once nobody has the device",
        options=[_DEVICE, ("--force", "first end the run that has the device, which may hang")],
        run=_action("setup", "unlock"),
    )
