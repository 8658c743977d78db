"""Whether a single column is written bare, or as the one member of an object."""

from collections.abc import Sequence

from holdfast.runtime.plan.formats import Formats, SerdeFeature, SerdeOption
from holdfast.runtime.plan.presence import given
from holdfast.types import Column


def key_is_bare(key: Sequence[Column], formats: Formats) -> bool:
    """A key of one column is bare unless the plan says otherwise."""
    return len(key) == 1 and SerdeFeature.WRAP_SINGLES not in (given(formats.key_features) or ())


def value_is_bare(formats: Formats) -> bool:
    bare = SerdeFeature.UNWRAP_SINGLES in (given(formats.value_features) or ())
    return bare or SerdeOption.UNWRAP_SINGLE_VALUES in (given(formats.options) or ())
