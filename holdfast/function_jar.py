"""The jar of Holdfast's own functions on Spark, compiled once per user and verified at every start.

Spark contains a compiler, so that a Java runtime is enough. The name of the jar contains a digest of the sources and of
that compiler; the SHA-256 beside it finds damage.
"""

import hashlib
import os
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from zipfile import ZipFile, ZipInfo

from holdfast.errors import StartError

COMPILE = "CompileSources"
FOLDER = "runtime/serdes/native"
PREFIX = "holdfast-functions-"
RETENTION_DAYS = 30


def function_jar(cache_dir: Path, *, java: Path, spark_jars: Path) -> Path:
    """The path of the jar in the cache. It is compiled if it is missing or damaged."""
    jar = cache_dir / f"{PREFIX}{_digest(spark_jars)}.jar"
    checksum = jar.with_suffix(".sha256")
    if not (jar.is_file() and checksum.is_file() and checksum.read_text("utf-8") == _sha256(jar)):
        cache_dir.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache_dir, prefix="compiling-") as folder:
            made = _compile(Path(folder), java, spark_jars)
            own_checksum = made.with_suffix(".sha256")
            own_checksum.write_text(_sha256(made), "utf-8")
            os.replace(made, jar)
            os.replace(own_checksum, checksum)
        _remove_old(cache_dir)
    with suppress(OSError):
        os.utime(checksum)
    return jar


def _remove_old(cache_dir: Path) -> None:
    """Remove jars of other releases that were not used lately.

    The checksum has the time of the last use: class archives depend on that of the jar.
    """
    for checksum in cache_dir.glob(f"{PREFIX}*.sha256"):
        with suppress(OSError):
            if checksum.stat().st_mtime < time.time() - RETENTION_DAYS * 86_400:
                checksum.with_suffix(".jar").unlink(missing_ok=True)
                checksum.unlink()


def _sources() -> Sequence[Path]:
    return sorted(Path(str(files("holdfast").joinpath(FOLDER))).glob("*.java"))


def _digest(spark_jars: Path) -> str:
    digest = hashlib.sha256()
    for source in _sources():
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    for compiler in sorted(path.name for path in spark_jars.glob("janino-*.jar")):
        digest.update(compiler.encode())
    return digest.hexdigest()[:16]


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _compile(folder: Path, java: Path, spark_jars: Path) -> Path:
    """The compiled jar, in a folder. Equal sources give equal bytes."""
    classes = folder / "classes"
    classes.mkdir()
    sources = {path.stem: str(path) for path in _sources()}
    compiler = [sources.pop(COMPILE), COMPILE]
    command = [str(java), "-cp", f"{spark_jars}/*", "org.codehaus.janino.SimpleCompiler", *compiler, str(classes)]
    run = subprocess.run([*command, *sources.values()], capture_output=True, text=True, check=False)
    found = sorted(classes.rglob("*.class"))
    if run.returncode != 0 or not found:
        raise StartError(
            "the functions of Holdfast cannot be compiled for Spark",
            detail="\n".join(line for line in run.stderr.splitlines() if not line.startswith("\tat "))[-1000:],
            hint=f"Check that {java} is Java 17 or later and works: {java} -version.",
        )
    jar = folder / "functions.jar"
    with ZipFile(jar, "w") as archive:
        for path in found:
            archive.writestr(ZipInfo(str(path.relative_to(classes))), path.read_bytes())
    return jar
