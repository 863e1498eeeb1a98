"""What holds of every command: it has help, and whatever is wrong is one line and an exit code, never a traceback."""

from __future__ import annotations

import argparse
import os
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from perfsuite.cli import main
from perfsuite.cli.command_help import parser_of, whole_parser
from perfsuite.cli.given_paths import _INPUTS, _OUTPUTS
from perfsuite.cli.registry import COMMANDS, Purpose, summary_of
from perfsuite.experiments.tracing.command import WORDS, word_parser
from perfsuite.workload.shapes.operation_shape import Operation
from tests.command_streams import Refused, Streams
from tests.device_lock import held_by, lock_holder

_ROOT = Path(__file__).resolve().parents[2]

Parser = argparse.ArgumentParser


# the table of commands


def _subcommands(parser: Parser) -> dict[str, Parser]:
    """Return the parsers right below one, by name."""
    found = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return dict(found[0].choices) if found else {}


def _leaves(name: str, parser: Parser) -> Iterator[tuple[str, Parser]]:
    """Yield a parser and all below it by their command lines."""
    yield name, parser
    for each, below in _subcommands(parser).items():
        yield from _leaves(f"{name} {each}", below)


def _all() -> dict[str, Parser]:
    parsers = dict(_leaves("perfsuite", whole_parser()))
    del parsers["perfsuite"]
    for word in WORDS:
        parsers |= dict(_leaves(f"perfsuite trace {word}", word_parser(word)))
    return parsers


_PARSERS = _all()
_TOP = [name for name in _PARSERS if name.count(" ") == 1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A line of a help's examples."""

    #: The command whose help has it.
    name: str
    line: str

    @property
    def words(self) -> list[str]:
        """The words behind 'perfsuite'."""
        words = shlex.split(self.line.replace('eval "$(', "").replace(')"', "").split(" > ")[0])
        return words[words.index("perfsuite") + 1 :]

    @property
    def options(self) -> argparse.Namespace:
        """What the parser that runs makes of it."""
        words = self.words
        is_word = words[0] == "trace" and words[1] in WORDS
        parser = word_parser(words[1]) if is_word else parser_of(words)
        return parser.parse_args(words[2:] if is_word else words)

    def having(self, option: str) -> list[str]:
        """The words with one more option, before what is another program's."""
        words = self.words
        at = words.index("--") if "--" in words else len(words)
        return [*words[:at], option, *words[at:]]


def _examples() -> Iterator[Example]:
    for name, parser in _PARSERS.items():
        block = re.search(r"^examples:\n(.*?)\n\n", parser.epilog or "", re.DOTALL | re.MULTILINE)
        lines = block[1].replace("%%", "%").splitlines() if block else []
        yield from (Example(name=name, line=line.strip()) for line in lines if not line.strip().startswith("# "))


_EXAMPLES = tuple(_examples())


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a command ended."""

    status: int
    out: str
    err: str

    @property
    def is_one_line(self) -> bool:
        """Whether it was a mistake, which one line tells."""
        lines = self.err.splitlines()
        return (self.status, self.out, len(lines)) == (2, "", 1) and lines[0].startswith("perfsuite: error: ")


Run = Callable[[Sequence[str]], Ended]


@pytest.fixture
def run(capsys: Streams, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command in a folder of its own as a shell would: whatever happens is an exit code and text."""
    monkeypatch.chdir(tmp_path)

    def ended(words: Sequence[str]) -> Ended:
        capsys.readouterr()
        try:
            status = main(words)
        except SystemExit as end:
            status = int(end.code or 0)
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return Ended(status=status, out=out, err=err)

    return ended


# help


def test_every_command_has_a_module_and_a_purpose() -> None:
    """The registry lists each once, by the headings' order, and each loads."""
    names = [command.name for command in COMMANDS]
    assert len(set(names)) == len(names)
    assert {command.purpose for command in COMMANDS} == set(Purpose)
    order = [list(Purpose).index(command.purpose) for command in COMMANDS]
    assert order == sorted(order)
    assert set(_subcommands(whole_parser())) == set(names)


@pytest.mark.parametrize("name", _PARSERS)
def test_help_is_an_answer(name: str, run: Run) -> None:
    """Of every command and action: on standard output, with exit code 0."""
    done = run([*name.split()[1:], "--help"])
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith(f"usage: {name} ")


#: Commands without ``--json``, and why: a program reads their answer as it is.
_WITHOUT_JSON = {
    "perfsuite completion": "the answer is a script of the shell",
    "perfsuite devices": "'perfsuite devices list' has it",
    "perfsuite llama-bench export": "the answer is a file of llama-bench, and -o says in which form",
    **dict.fromkeys(
        (name for name in _PARSERS if name.startswith("perfsuite export ")), "the answer is the format that is named"
    ),
}


def test_every_command_that_answers_has_json() -> None:
    """All except those whose answer a program reads already; it is a switch everywhere."""
    answering = {
        name: parser
        for name, parser in _PARSERS.items()
        if not _subcommands(parser) or "run" in parser._defaults  # a command with actions answers by these
    }
    without = {name for name, parser in answering.items() if "--json" not in parser._option_string_actions}
    assert without == _WITHOUT_JSON.keys()
    found = [parser._option_string_actions["--json"] for name, parser in answering.items() if name not in without]
    assert {(type(each), each.nargs) for each in found} == {(argparse._StoreTrueAction, 0)}


def test_every_help_is_short_and_says_what_each_option_does() -> None:
    """It begins with a sentence of one line of 80 columns; an option is one clause, and two examples are enough."""
    first = {name: (parser.description or "").split("\n\n")[0].strip() for name, parser in _PARSERS.items()}
    assert {name: text for name, text in first.items() if not re.fullmatch(r"[A-Z].*[.]", text, re.DOTALL)} == {}
    assert {name: text for name, text in first.items() if len(text) > 80 - (17 if name in _TOP else 0)} == {}
    assert {name: text for name, text in first.items() if name in _TOP and not _is_summary(name, text)} == {}
    odd = [
        (name, action.dest, action.help)
        for name, parser in _PARSERS.items()
        for action in parser._actions
        if not isinstance(action, argparse._SubParsersAction) and not _is_clause(action.help)
    ]
    assert odd == []
    many = Counter(each.name for each in _EXAMPLES)
    assert {name: n for name, n in many.items() if n > 2} == {}


def _is_summary(name: str, text: str) -> bool:
    """Whether a sentence is the line of 'perfsuite --help'."""
    return text.rstrip(".").lower() == summary_of(name.split(" ")[1]).lower()


def _is_clause(text: str | None) -> bool:
    return text == argparse.SUPPRESS or bool(text and len(text) <= 180 and not text.endswith("."))


def test_every_example_is_of_its_command_and_accepted(capsys: Streams) -> None:
    """Each command has one and says where to read on; the parser that runs takes each line as it stands."""
    assert set(_TOP) - {each.name for each in _EXAMPLES} == set()
    assert [each.line for each in _EXAMPLES if each.name not in each.line] == []
    for each in _EXAMPLES:
        try:
            assert each.options is not None
        except SystemExit:
            pytest.fail(f"{each.line}: {capsys.readouterr().err}")
    texts = {name: f"{_PARSERS[name].description} {_PARSERS[name].epilog}" for name in _TOP}
    assert [name for name, text in texts.items() if "see also: " not in text] == []
    pages = [(name, page) for name, text in texts.items() for page in re.findall(r"docs/[\w/.-]+\.md", text)]
    assert [(name, page) for name, page in pages if not (_ROOT / page).is_file()] == []


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_every_help_can_be_shown(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """At any width; lines that are no command to be copied and no usage fit into it."""
    monkeypatch.setenv("COLUMNS", str(columns))
    long = []
    for name, parser in _PARSERS.items():
        text = parser.format_help()
        folded = re.sub(r"\Ausage:.*?\n\n", "", text, flags=re.DOTALL).splitlines()
        long += [(name, line) for line in folded if len(line) > columns and not line.startswith("  ")]
        assert "%%" not in text, name
    assert long == []


def _speaking() -> Iterator[str]:
    """Yield the commands whose modules tell of progress or make remarks."""
    for path in sorted((_ROOT / "perfsuite" / "cli").glob("*.py")):
        text = path.read_text("utf-8")
        is_command = "def add_parser" in text or path.stem.startswith("devices_")
        if re.search(r"\b(progress|remarks|tell_picture)\(", text) and is_command:
            name = path.stem.replace("_", "-")
            yield (
                name if f"perfsuite {name}" in _PARSERS else path.stem.replace("_", " ", 1)
            )  # an action, such as 'devices setup'


@pytest.mark.parametrize("name", sorted(_speaking()))
def test_what_speaks_can_be_quiet(name: str) -> None:
    """Whatever says more than its answer has --quiet, short -q."""
    leaves = [
        parser for at, parser in _PARSERS.items() if at.startswith(f"perfsuite {name}") and not _subcommands(parser)
    ]
    assert leaves
    assert all({"-q", "--quiet"} <= parser._option_string_actions.keys() for parser in leaves)


@pytest.mark.parametrize(
    ("words", "limit"),
    [
        (["bisect", "a", "b", "--least=0.5"], "below 0.5"),
        (["fidelity", "--kernel-budget=90000"], "86400"),
        (["history", "sql", "SELECT 1", "--rows=200000000"], "100,000,000"),
        (["history", "sql", "SELECT 1", "--limit-s=90000"], "86,400"),
        (["live", "--limit=90000"], "86400"),
        (["live", "--cost", "--pairs=1"], "5"),
        (["overhead", "--pairs=1"], "20"),
        (["bisect", "a", "b", "--lora-rank=65537"], "65536"),
        (["bisect", "a", "b", "--parallel=257"], "256"),
        (["policy", "gemv", "--processes=5"], "an even number from 6 on"),
        (["prompts", __file__, "4", "--random=100001"], "100000"),
    ],
)
def test_a_limit_is_in_the_help(words: list[str], limit: str, run: Run) -> None:
    """What an error says of an option's limit can be read before."""
    option = next(word.partition("=")[0] for word in reversed(words) if word.startswith("--"))
    told = run(words)
    assert told.is_one_line
    assert limit in told.err
    name = words[:2] if words[0] in ("history", "policy") else words[:1]
    text = run([*name, "--help"]).out.split(f"  {option} ", 1)[1].split("  --", 1)[0]
    assert limit in " ".join(text.split())


# words that are none


@pytest.mark.parametrize("name", _PARSERS)
def test_an_unknown_option_is_told_by_the_usage(name: str, run: Run) -> None:
    """Of every command and action: the last line says what is wrong, and the exit code is 2."""
    done = run([*name.split()[1:], "--no-such-option"])
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("usage: perfsuite ")
    assert re.match(r"perfsuite[a-z -]*: error: ", done.err.splitlines()[-1])


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("", "required: COMMAND"),
        ("reprot", "no command 'reprot'; did you mean report?"),
        ("xyz", "no command 'xyz'; 'perfsuite --help' lists them"),
        ("overhead --backend opnecl", "did you mean opencl?"),
        ("calibrate --threads 1.5", "argument --threads: invalid int value: '1.5'"),
        ("devices stup", "'doctor', 'unlock'); did you mean setup?"),
        ("trace view statistic run", "did you mean statistics?"),
        ("report run --ouput page.html", "unrecognized arguments: --ouput page.html; did you mean --output?"),
        ("export pytest-benchmark one two", "unrecognized arguments: two"),
    ],
)
def test_what_is_no_command_line_is_told_with_what_was_meant(line: str, told: str, run: Run) -> None:
    """Unknown commands, missing arguments and values out of their choices."""
    done = run(line.split())
    assert done.status == 2
    assert done.err.startswith("usage: perfsuite")
    assert told.replace("'", "") in done.err.splitlines()[-1].replace("'", "")


# files


def _writing() -> Iterator[tuple[Example, str]]:
    """Yield for each command an example, and each of its options that names a file to write."""
    seen = set()
    for each in _EXAMPLES:
        if any(getattr(each.options, name, False) for name in ("dry_run", "list")):
            continue
        for option, action in _PARSERS[each.name]._option_string_actions.items():
            if action.dest in _OUTPUTS and action.type is Path and option.startswith("--"):
                if (each.name, option) not in seen:
                    yield each, option
                seen.add((each.name, option))


@pytest.mark.parametrize(("example", "option"), [*_writing()], ids=lambda each: getattr(each, "name", each))
def test_a_file_that_cannot_be_written_is_said_before_anything_is_done(example: Example, option: str, run: Run) -> None:
    """By every command that writes one, with the option that names it."""
    done = run(example.having(f"{option}=/proc/none/a.png"))
    assert done.is_one_line, done
    assert done.err.startswith(f"perfsuite: error: {option}=/proc/none/a.png: cannot be written (")


def _reading() -> Iterator[tuple[Example, str]]:
    """Yield the examples that read files of the current folder, each with the first of these."""
    for each in _EXAMPLES:
        for name in _INPUTS:
            given = getattr(each.options, name, None)
            path = given[0] if isinstance(given, list) and given else given
            if isinstance(path, Path):
                yield each, str(path)
                break


@pytest.mark.parametrize(("example", "named"), [*_reading()], ids=lambda each: getattr(each, "line", each))
def test_a_file_that_is_not_there_is_named(example: Example, named: str, run: Run) -> None:
    done = run(example.words)
    assert done.is_one_line, done
    assert named in done.err


# devices


#: Of each command that measures, words with which it does so.
_STUDY = str(_ROOT / "docs" / "examples" / "study" / "plan.toml")
_MEASURING = (
    ["calibrate"],
    ["certify", "--runs=1"],
    ["fidelity"],
    ["held-out"],
    ["kernels", "--model=smollm2-135m-l2-q8_0"],
    ["live"],
    ["live", "--cost"],
    ["offload", "--model=smollm2-135m-l2-q8_0"],
    ["overhead"],
    ["variants"],
    ["policy", Operation.GEMV.value],
    ["roofline"],
    ["study", _STUDY],
    ["sweep", "gemv"],
    ["trace", "--model=smollm2-135m-l2-q8_0"],
    ["trace", "--", "true"],
    ["trace", "--pid=1"],
    ["trace", "--opencl", "--", "true"],
    ["trace", "agree"],
)

#: Commands that look at what is stored, or compute.
_LOOKING = (
    ["fidelity", "--published"],
    ["roofline", "--published"],
    ["study", _STUDY, "--dry-run"],
    ["sweep", "gemv", "--expected-only"],
    ["trace", "check"],
)

#: Values of options that are none, and how the line names them.
_NONE = {
    "--model=llama-9-q8_0": "llama-9",
    "--scenario=lunch": "lunch",
    "--device=hots": "hots",
    "--plot=a.pdf": ".pdf",
}

#: Commands that measure, each with something else that is not there, and the line that says so.
_MISTAKEN = (
    (["held-out", "--workload=llama-9-q8_0:16"], "llama-9"),
    (["variants", "--draft=llama-9-q8_0"], "llama-9"),
    (["trace", "--model=smollm2-135m-l2-q8_0", "--scenario=lunch"], "lunch"),
    (["trace", "--model=smollm2-135m-l2-q8_0", "--memory-limit=much"], "--memory-limit=much"),
    (["trace", "--model=smollm2-135m-l2-q8_0", "--output=kept"], "kept: holds trace.pstrace"),
    (["trace", "--opencl", "--output=kept", "--", "true"], "--output=kept: holds the logs"),
    (["fidelity", "--kernel=soup"], "--kernel=soup"),
    (["roofline", "--sweep=soup"], "--sweep=soup"),
    (["policy", "check", "none.json"], "none.json"),
    (["calibrate", "--type=q8_O"], "did you mean q8_0?"),
    (["fidelity", "--model=smolm2-135m-q8_0"], "did you mean smollm2-135m"),
    (["trace", "--", "no-such-program"], "trace: no-such-program: no such program here"),
    (["bisect", "build-a", "build-b", "--case=decod"], "--case=decod: no case has this id, or ends so; did you mean"),
)


def _mistaken() -> Iterator[tuple[list[str], str]]:
    """Yield each command that measures with a value that is none of each option that it has."""
    for words in _MEASURING:
        parser = _PARSERS[f"perfsuite {words[0]}"]
        known = next((below for name, below in _subcommands(parser).items() if name in words), parser)
        for option, told in _NONE.items() if words[0] != "trace" else ():
            if option.partition("=")[0] in known._option_string_actions:
                yield [*words, option], told
    yield from _MISTAKEN


@pytest.fixture
def locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give this test a lock, a cache and a folder of its own."""
    folder = tmp_path / "locks"
    folder.mkdir()
    monkeypatch.setenv("PERFSUITE_LOCK_DIR", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("perfsuite.experiments.tracing.command_program.find_helper", lambda _: Path("helper"))
    monkeypatch.chdir(tmp_path)
    return folder


@pytest.mark.parametrize("arguments", _MEASURING, ids=" ".join)
def test_a_device_that_somebody_has_is_not_measured(
    arguments: list[str], locks: Path, refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each command that measures says in one line who has the device, and leaves it alone."""
    monkeypatch.setattr(
        "perfsuite.measure.board.local_board.materialize", lambda weights, cache_dir: cache_dir / "none.gguf"
    )
    monkeypatch.setattr("perfsuite.experiments.tracing.command_program.await_engine", lambda *_, **__: True)
    with held_by(locks, "anna"):
        told = refused(arguments)
        owner = lock_holder(locks)
    assert "host: held by anna from desk (pytest --device=board)" in told
    assert owner is not None
    assert owner.user == "anna"


def test_mistakes_are_said_before_the_device_is_asked_for(locks: Path, refused: Refused) -> None:
    """Nobody waits for a device that somebody else has, only to read that a name is mistyped."""
    Path("kept").mkdir()
    Path("kept", "trace.pstrace").touch()
    Path("kept", "opencl-1.log").touch()
    with held_by(locks, "anna"):
        found = [(words, told, refused(words)) for words, told in _mistaken()]
    assert len(found) > 2 * len(_MISTAKEN)
    assert [(words, line) for words, told, line in found if told not in line] == []


def test_a_llama_cpp_that_is_not_there_is_said_before_the_device_is_asked_for(
    locks: Path, refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLAMA_CPP_LIB_PATH", "/nowhere")
    with held_by(locks, "anna"):
        assert "LLAMA_CPP_LIB_PATH: /nowhere: is not a folder" in refused(["overhead"])


def test_who_only_looks_needs_no_device(locks: Path, run: Run) -> None:
    """What is stored, published or computed is reported while somebody measures."""
    with held_by(locks, "anna"):
        for words in _LOOKING:
            done = run(words)
            assert done.status == 0 or (done.status, words) == (1, ["trace", "check"]), done  # 1: there is no eBPF here
            assert done.out


# outputs that take nothing


_ANSWERS = ("architectures", "devices list", "plot --list", "completion bash", "--version", "reproduce life --json")


@pytest.mark.parametrize("line", _ANSWERS)
def test_an_output_that_takes_nothing_is_no_traceback(
    line: str, capsys: Streams, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader that goes away, as head does, ends the command in silence; a device that is full is one line."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as gone, monkeypatch.context() as patch:
        patch.setattr("sys.stdout", gone)
        assert main(line.split()) == 0
    assert capsys.readouterr().err == ""
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full")
    with open("/dev/full", "w") as full, monkeypatch.context() as patch:
        patch.setattr("sys.stdout", full)
        assert main(line.split()) == 2
    assert re.fullmatch(r"perfsuite: error: .*No space left on device.*\n", capsys.readouterr().err)
