"""The jars that PySpark does not include, fetched once per user and verified at every start.

`jars.txt` pins each jar by coordinate and SHA-256. Ivy, which ships with PySpark, fetches them from the Maven registry
that the machine is configured for.
"""

import errno
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from xml.sax.saxutils import quoteattr

from holdfast.errors import StartError
from holdfast.function_jar import function_jar

Progress = Callable[[int, int, str], None]
"""Called with the number of jars done, the total, and the name of the current one."""

OLDEST_JAVA = 17

FOUND = re.compile(r"found [^#\s]+#([^;\s]+);")
FETCHED = re.compile(r"\[SUCCESSFUL \] [^#\s]+#([^;\s]+);")
ERROR_LINE = re.compile(r"not found|FAILED|Exception|access error|unresolved", re.IGNORECASE)


class JarSet(StrEnum):
    """Which process the jars are for; the two need different releases of the same libraries."""

    SPARK = "spark"
    BROKER = "broker"


@dataclass(frozen=True, slots=True)
class Jar:
    """A pinned jar."""

    organisation: str
    name: str
    revision: str
    sha256: str

    @property
    def file_name(self) -> str:
        return f"{self.name}-{self.revision}.jar"


def silent(_done: int, _total: int, _name: str) -> None:
    """Ignore progress messages."""


@cache
def pinned(which: JarSet) -> tuple[Jar, ...]:
    """The jars of a set, as the project pins them."""
    lines = (line.split() for line in files("holdfast").joinpath("jars.txt").read_text("utf-8").splitlines())
    return tuple(
        Jar(organisation, name, revision, sha256)
        for kind, coordinate, sha256 in (line for line in lines if line and line[0] != "#")
        for organisation, name, revision in [coordinate.split(":")]
        if kind == which
    )


def fetch_jars(
    which: JarSet,
    cache_dir: Path,
    *,
    java: Path,
    ivy_settings: Path | None = None,
    progress: Progress = silent,
) -> tuple[Path, ...]:
    """The paths of a set's jars, verified. Only jars missing from the cache are fetched from the registry.

    Those of Spark include the jar of our own functions.
    """
    fetched = fetch_listed(pinned(which), cache_dir, java=java, ivy_settings=ivy_settings, progress=progress)
    if which is not JarSet.SPARK:
        return fetched
    with translate_errors(cache_dir):
        return (*fetched, function_jar(cache_dir, java=java, spark_jars=ivy_jar().parent))


def fetch_listed(
    wanted: Sequence[Jar],
    cache_dir: Path,
    *,
    java: Path,
    ivy_settings: Path | None = None,
    progress: Progress = silent,
) -> tuple[Path, ...]:
    """The paths of any pinned jars; each list of jars has a folder of its own in the cache."""
    folder = cache_dir / digest_of(wanted)
    with translate_errors(cache_dir):
        missing = [jar for jar in wanted if not intact(folder / jar.file_name, jar)]
        if missing:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=cache_dir, prefix="fetching-") as staging:
                resolve(missing, Path(staging), java=java, ivy_settings=ivy_settings, progress=progress)
                for jar in missing:
                    os.replace(checked(Path(staging) / jar.file_name, jar), folder / jar.file_name)
    return tuple(folder / jar.file_name for jar in wanted)


@contextmanager
def translate_errors(cache_dir: Path) -> Iterator[None]:
    """Translate file system errors to a `StartError` with a hint."""
    try:
        yield
    except OSError as cause:
        raise StartError(
            f'the jar folder "{cache_dir}" cannot be used',
            detail=f"{cause}.",
            hint="Check that it is writable and that its disk has space, or set jar_dir to another folder.",
        ) from cause


def digest_of(jars: Iterable[Jar]) -> str:
    """A short name for a list of jars; releases with different jars use different folders."""
    listed = "\n".join(f"{jar.organisation}:{jar.name}:{jar.revision}:{jar.sha256}" for jar in jars)
    return hashlib.sha256(listed.encode()).hexdigest()[:16]


def intact(path: Path, jar: Jar) -> bool:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == jar.sha256
    except FileNotFoundError:
        return False


def checked(path: Path, jar: Jar) -> Path:
    if intact(path, jar):
        return path
    raise StartError(
        f"the jar {jar.file_name} is not the one this release was tested with",
        detail=f"The registry's file does not have SHA-256 {jar.sha256}." if path.exists() else "Ivy did not fetch it.",
        hint="Check which Maven registry this machine uses; a mirror may have a damaged or replaced file.",
    )


def resolve(jars: Sequence[Jar], into: Path, *, java: Path, ivy_settings: Path | None, progress: Progress) -> None:
    """Fetch the jars into a folder with Ivy."""
    (into / "ivy.xml").write_text(ivy_module(jars), encoding="utf-8")
    command = [str(java), "-jar", str(ivy_jar()), "-ivy", str(into / "ivy.xml"), "-cache", str(into / "ivy-cache")]
    command += ["-confs", "default", "-retrieve", str(into / "[artifact]-[revision].[ext]")]
    if ivy_settings is not None:
        command += ["-settings", str(ivy_settings)]
    output: list[str] = []
    steps = 0
    progress(0, len(jars), "")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=into) as ivy:
        assert ivy.stdout is not None
        for line in ivy.stdout:
            output.append(line.rstrip())
            # Resolving a jar, with its POM and the POM's parents, takes longer than fetching it: each is half a step.
            if step := FOUND.search(line) or FETCHED.search(line):
                steps += 1
                progress(min(steps // 2, len(jars)), len(jars), step[1])
    if ivy.returncode != 0 and any(os.strerror(errno.ENOSPC) in line for line in output):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(into))
    if ivy.returncode != 0:
        raise StartError(
            f"could not fetch {len(jars)} jars that Spark and Kafka need",
            detail="\n".join(problems(output)),
            hint="Check that this machine can reach a Maven registry. The jars are fetched only once per user.",
        )
    progress(len(jars), len(jars), "")


def problems(output: Sequence[str]) -> Sequence[str]:
    """The lines of Ivy's output that explain a failure."""
    found = dict.fromkeys(line.strip(" \t:") for line in output if ERROR_LINE.search(line))
    return [*found][-10:] or [line for line in output if line.strip()][-10:]


def ivy_module(jars: Sequence[Jar]) -> str:
    dependencies = "\n".join(
        f"    <dependency org={quoteattr(jar.organisation)} name={quoteattr(jar.name)} rev={quoteattr(jar.revision)}"
        ' transitive="false" conf="default->master"/>'
        for jar in jars
    )
    return (
        '<ivy-module version="2.0">\n  <info organisation="holdfast" module="jars"/>\n'
        '  <configurations><conf name="default"/></configurations>\n'
        f"  <dependencies>\n{dependencies}\n  </dependencies>\n</ivy-module>\n"
    )


def ivy_jar() -> Path:
    """The Ivy jar of PySpark, found without importing PySpark."""
    spec = find_spec("pyspark")
    found = sorted(Path(spec.origin).parent.glob("jars/ivy-*.jar")) if spec and spec.origin else []
    if not found:
        raise StartError(
            "PySpark is not installed, or does not contain Ivy", hint="Install the package again: pip install holdfast."
        )
    return found[-1]


def find_java(java_home: Path | None = None) -> Path:
    """The `java` executable, release 17 or later: that of `java_home` if set, else the first one on the PATH."""
    named = str(java_home / "bin" / "java") if java_home else "java"
    found = shutil.which(named)
    install = f"Install Java {OLDEST_JAVA} or later (for example Eclipse Temurin), or set JAVA_HOME to its folder."
    if found is None:
        raise StartError(f'Java is required, but "{named}" was not found', hint=install)
    java = Path(found)
    if (release := java_release(java)) < OLDEST_JAVA:
        raise StartError(
            f"Java {OLDEST_JAVA} or later is required, but this is Java {release}",
            detail=f'It was found at "{java.resolve()}".',
            hint=install,
        )
    return java


def java_release(java: Path) -> int:
    """The feature release of a `java`, read from its `release` file if there is one, because starting Java is slow."""
    file = java.resolve().parent.parent / "release"
    text = file.read_text("utf-8", errors="replace") if file.is_file() else version_output(java)
    found = re.search(r'(?:JAVA_VERSION=|version )"(?:1\.)?(\d+)', text)
    if found is None:
        raise StartError(f'the Java version of "{java}" is unknown', detail=text.strip()[:500] or None)
    return int(found[1])


def version_output(java: Path) -> str:
    try:
        return subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=False).stderr
    except (OSError, subprocess.TimeoutExpired) as cause:
        raise StartError(f'"{java}" cannot be run', detail=str(cause)) from cause
