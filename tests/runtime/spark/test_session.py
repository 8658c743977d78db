"""How Spark is started."""

from pathlib import Path

from holdfast.runtime.spark.session import java_options


def test_options_of_the_user_stay_and_the_log_is_set_once():
    kept = "-Xss4m -XX:TieredStopAtLevel=1 -XX:+ExitOnOutOfMemoryError -Dlog4j2.configurationFile="
    first = java_options("-Xss4m -XX:TieredStopAtLevel=1", Path("/a/log4j2.properties"))
    assert first == f"{kept}/a/log4j2.properties"
    assert java_options(first, Path("/b")) == f"{kept}/b"
