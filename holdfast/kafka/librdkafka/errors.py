"""librdkafka's errors, translated to ours."""

import logging
from collections.abc import Mapping

from confluent_kafka import KafkaError as Reported
from confluent_kafka import KafkaException

from holdfast.errors import KafkaError
from holdfast.kafka.librdkafka.repeats import RepeatedLines
from holdfast.kafka.port import Fenced, TopicProblem
from holdfast.names import TopicName

client_log = logging.getLogger("holdfast.kafka.client")
"""Where librdkafka's own log lines go."""
client_log.addFilter(lambda line: "retrying" not in line.getMessage())
client_log.addFilter(RepeatedLines())

FENCED = frozenset({Reported._FENCED, Reported.PRODUCER_FENCED, Reported.INVALID_PRODUCER_EPOCH})

OUT_OF_REACH = frozenset({Reported._TRANSPORT, Reported._ALL_BROKERS_DOWN, Reported._TIMED_OUT})
REFUSALS = frozenset({Reported._AUTHENTICATION, Reported._SSL})
"""Reported beside a call that only fails because no broker can be reached: the brokers refuse this client."""

DENIALS = frozenset({Reported.TOPIC_AUTHORIZATION_FAILED, Reported.TOPIC_EXCEPTION})
"""Problems of a topic that waiting does not end."""
EVERYWHERE = (
    OUT_OF_REACH
    | REFUSALS
    | {
        Reported._RESOLVE,
        Reported._DESTROY,
        Reported._FATAL,
        Reported.REQUEST_TIMED_OUT,
        Reported.NETWORK_EXCEPTION,
        Reported.SASL_AUTHENTICATION_FAILED,
        Reported.CLUSTER_AUTHORIZATION_FAILED,
        Reported.GROUP_AUTHORIZATION_FAILED,
    }
)
"""Problems of the cluster or of this client, which are reported for each topic that a request names."""

UNREACHABLE = "Check that Kafka runs at the address of --kafka and that this machine can reach it."
REFUSED = "Check security.protocol, sasl.mechanism and the credentials in the [kafka] settings."
HINTS: Mapping[int, str] = {
    Reported._TRANSPORT: UNREACHABLE,
    Reported._ALL_BROKERS_DOWN: UNREACHABLE,
    Reported._RESOLVE: UNREACHABLE,
    Reported._TIMED_OUT: UNREACHABLE,
    Reported.REQUEST_TIMED_OUT: UNREACHABLE,
    Reported._AUTHENTICATION: REFUSED,
    Reported.SASL_AUTHENTICATION_FAILED: REFUSED,
    Reported.UNSUPPORTED_SASL_MECHANISM: REFUSED,
    Reported._SSL: "Check ssl.ca.location, and that the certificate names the broker's host.",
    Reported.TOPIC_AUTHORIZATION_FAILED: "Allow this user to read, write, create and describe the topic.",
    Reported.CLUSTER_AUTHORIZATION_FAILED: "Allow this user to create topics and to write idempotently.",
    Reported.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "Allow this user to write with transactional ids that start with "
    '"holdfast-".',
    Reported.INVALID_REPLICATION_FACTOR: "The cluster has fewer brokers than that; "
    "lower REPLICAS in the statement or internal_replication in the settings.",
    Reported.POLICY_VIOLATION: "A policy of the Kafka cluster forbids it.",
    Reported.MSG_SIZE_TOO_LARGE: "Raise max.message.bytes of the topic.",
    Reported.INVALID_TRANSACTION_TIMEOUT: "Raise transaction.max.timeout.ms of the brokers.",
    Reported._UNKNOWN_TOPIC: "Create the topic first, or check its name.",
    Reported.UNKNOWN_TOPIC_OR_PART: "Create the topic first, or check its name.",
    Reported._FENCED: "Another server runs with the same service_id; stop one of the two.",
    Reported.PRODUCER_FENCED: "Another server runs with the same service_id; stop one of the two.",
}


def reported(cause: KafkaException | Reported) -> Reported:
    """The error inside an exception."""
    if isinstance(cause, Reported):
        return cause
    inner = cause.args[0] if cause.args else None
    return inner if isinstance(inner, Reported) else Reported(Reported._FAIL, str(cause))


def translate(problem: str, cause: KafkaException | Reported) -> KafkaError:
    """The error to raise: a `problem` (as "topic x cannot be read") and what librdkafka reported."""
    error = reported(cause)
    kind = Fenced if error.code() in FENCED else KafkaError
    return kind(problem, detail=f"{error.str().rstrip('.')} ({error.name()}).", hint=HINTS.get(error.code()))


def translate_topic(problem: str, topic: TopicName, cause: KafkaException | Reported) -> KafkaError:
    """The error of a request about one topic: a `TopicProblem`, unless no topic could be asked about."""
    code, error = reported(cause).code(), translate(problem, cause)
    if code in EVERYWHERE:
        return error
    return TopicProblem(problem, topic=topic, lasting=code in DENIALS, detail=error.detail, hint=error.hint)
