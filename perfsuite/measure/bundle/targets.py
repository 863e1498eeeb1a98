"""The kinds of devices that a bundle can be compiled for, and what their processors may have."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from perfsuite.errors import NativeBuildError, meant

#: The processor of this machine, whatever it has.
NATIVE = "native"

_NO_X86 = ("AVX", "AVX2", "BMI2", "FMA", "F16C", "AVX512", "AVX_VNNI", "SSE42")


@dataclass(frozen=True, slots=True, kw_only=True)
class Processor:
    """A level of processors: what a bundle may use of them."""

    #: As compilers name it.
    name: str
    #: What ``/proc/cpuinfo`` has to list of every processor.
    features: frozenset[str]
    #: How llama.cpp is configured for it.
    settings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleTarget:
    """A kind of device."""

    #: The target as GCC and Debian name it.
    name: str
    #: What ``uname -m`` says there; the first is what CMake is told.
    machines: tuple[str, ...]
    #: Of an ELF file: 32 or 64 bits, and the number of its machine.
    elf: tuple[int, int]
    #: The target as zig names it.
    zig: str
    #: From the least to the best.
    processors: tuple[Processor, ...]
    #: Which of them is compiled for where none is asked for.
    usual: str
    #: Whether its C library is glibc.
    has_glibc: bool = True

    @property
    def package(self) -> str:
        """Debian's package of its compiler."""
        return f"g++-{self.name.replace('_', '-')}"

    def processor(self, name: str | None) -> Processor:
        """Return a level by its name, the usual one for None; for Arm any that its compilers know.

        Raises `NativeBuildError` where there is none of that name.
        """
        wanted = name or self.usual
        found = next((each for each in self.processors if each.name == wanted), None)
        if found is not None:
            return found
        if wanted == NATIVE and self.elf == (64, 62):
            return Processor(name=NATIVE, features=frozenset(), settings=("-DGGML_NATIVE=ON",))
        if self.name.startswith(("aarch64", "arm")) and wanted.startswith("armv") and wanted.isprintable():
            return _arm(wanted)
        names = [each.name for each in self.processors]
        known = ", ".join(names) + meant(wanted, names)
        raise NativeBuildError(f"--processor={wanted}: is none of {self.name}; expected one of {known}")

    def best_processor(self, features: Collection[str]) -> Processor:
        """Return the best level of a device whose processors all have these features; the usual one for unknown ones.

        Raises `NativeBuildError` where they lack those of the least.
        """
        if not set(features) & {name for each in self.processors for name in each.features}:
            return self.processor(None)
        found = [each for each in self.processors if each.features <= set(features)]
        if not found:
            lacks = ", ".join(sorted(self.processors[0].features - set(features)))
            raise NativeBuildError(f"{self.name}: its processors lack {lacks}, which llama.cpp needs there")
        return found[-1]


def _arm(name: str, *features: str) -> Processor:
    return Processor(name=name, features=frozenset(features), settings=(f"-DGGML_CPU_ARM_ARCH={name}",))


def _x86(name: str, features: str, *extensions: str) -> Processor:
    """Return a level of x86-64: what it has not is switched off, for CMake has defaults of its own."""
    settings = tuple(f"-DGGML_{each}={'ON' if each in extensions else 'OFF'}" for each in _NO_X86)
    return Processor(name=name, features=frozenset(features.split()), settings=settings)


_AARCH64 = (
    _arm("armv8-a", "asimd"),
    _arm("armv8.2-a+dotprod", "asimddp"),
    _arm("armv8.2-a+fp16+dotprod+i8mm", "asimddp", "asimdhp", "i8mm"),
    _arm("armv8.2-a+fp16+dotprod+i8mm+sve", "asimddp", "asimdhp", "i8mm", "sve"),
)
_V3 = ("SSE42", "AVX", "AVX2", "BMI2", "FMA", "F16C")
#: *Source*: the levels of the x86-64 psABI; what the kernel calls each feature, arch/x86/include/asm/cpufeatures.h.
_X86_64 = (
    _x86("x86-64-v2", "sse4_2 ssse3 popcnt", "SSE42"),
    _x86("x86-64-v3", "avx avx2 bmi2 fma f16c", *_V3),
    _x86("x86-64-v4", "avx2 bmi2 fma f16c avx512f avx512bw avx512cd avx512dq avx512vl", *_V3, "AVX512"),
)
_ARM = (_arm("armv7-a+neon-vfpv4", "neon", "vfpv4"),)

#: *Source*: the numbers of machines, elf.h: EM_ARM 40, EM_X86_64 62, EM_AARCH64 183.
_TARGETS = (
    ("x86_64-linux-gnu", ("x86_64", "amd64"), (64, 62), "x86_64-linux-gnu.2.31", _X86_64, "x86-64-v3"),
    ("aarch64-linux-gnu", ("aarch64", "arm64"), (64, 183), "aarch64-linux-gnu.2.31", _AARCH64, "armv8.2-a+dotprod"),
    ("arm-linux-gnueabihf", ("armv7l", "armv8l"), (32, 40), "arm-linux-gnueabihf.2.31", _ARM, "armv7-a+neon-vfpv4"),
    ("x86_64-linux-musl", ("x86_64", "amd64"), (64, 62), "x86_64-linux-musl", _X86_64, "x86-64-v3"),
    ("aarch64-linux-musl", ("aarch64", "arm64"), (64, 183), "aarch64-linux-musl", _AARCH64, "armv8.2-a+dotprod"),
)

#: By name; glibc's come first.
TARGETS: Mapping[str, BundleTarget] = MappingProxyType(
    {
        name: BundleTarget(
            name=name,
            machines=machines,
            elf=elf,
            zig=zig,
            processors=processors,
            usual=usual,
            has_glibc="musl" not in name,
        )
        for name, machines, elf, zig, processors, usual in _TARGETS
    }
)


def find_target(name: str) -> BundleTarget:
    """Return a target by its name; raises `NativeBuildError` where there is none of it."""
    if name in TARGETS:
        return TARGETS[name]
    accepted = ", ".join(TARGETS) + meant(name, TARGETS)
    raise NativeBuildError(f"--target={name}: is not a target of a bundle; expected one of {accepted}")


def target_of(machine: str, *, has_glibc: bool) -> BundleTarget:
    """Return the target of a device by what ``uname -m`` says there, and whether its C library is glibc.

    Raises `NativeBuildError` where there is none.
    """
    for each in TARGETS.values():
        if machine in each.machines and each.has_glibc == has_glibc:
            return each
    library = "glibc" if has_glibc else "musl"
    raise NativeBuildError(f"no bundle can be made for {machine} with {library}; expected one of {', '.join(TARGETS)}")
