import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.LongDeserializer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StoreQueryParameters;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.SessionWindowedDeserializer;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.TimeWindowedDeserializer;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.WindowedSerdes;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.QueryableStoreType;
import org.apache.kafka.streams.state.QueryableStoreTypes;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.WindowStore;

/**
 * Tumbling counts, hopping last values and session counts over one topic, each with a changelog and an output topic.
 *
 * Arguments: bootstrap servers, application id, input topic, state folder, and in milliseconds the size, grace and
 * retention of tumbling windows, the size, advance, grace and retention of hopping ones, and the gap, grace and
 * retention of sessions. The output topics are the application id with -tumbling, -hopping and -session.
 *
 * Each line of the input is a request, each line of the output that starts with a brace is its answer:
 * "records" returns the number of processed records, -1 until the application runs; "stores" returns the number of processed records and the contents of the stores; "read KIND TOPIC [SIZE]" returns
 * the last value of each window in a topic, as the deserializers of Kafka Streams read it.
 */
public class WindowedApplication {
    private static final Serde<String> TEXT = Serdes.String();
    private static final Serde<Long> COUNT = Serdes.Long();

    private final String bootstrap;
    private final String id;
    private final AtomicLong processed = new AtomicLong();
    private final KafkaStreams streams;

    WindowedApplication(String[] arguments) {
        bootstrap = arguments[0];
        id = arguments[1];
        Duration[] spans = new Duration[arguments.length - 4];
        for (int i = 0; i < spans.length; i++) {
            spans[i] = Duration.ofMillis(Long.parseLong(arguments[4 + i]));
        }
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, id);
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, arguments[3]);
        settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100);
        settings.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        StreamsBuilder builder = new StreamsBuilder();
        define(builder, arguments[2], spans);
        streams = new KafkaStreams(builder.build(), settings);
    }

    private void define(StreamsBuilder builder, String input, Duration[] spans) {
        KStream<String, String> records = builder.stream(input, Consumed.with(TEXT, TEXT));
        KGroupedStream<String, String> grouped = records.groupByKey(Grouped.with(TEXT, TEXT));
        KTable<Windowed<String>, Long> tumbling = grouped
            .windowedBy(TimeWindows.ofSizeAndGrace(spans[0], spans[1]))
            .count(Materialized.<String, Long, WindowStore<Bytes, byte[]>>as("tumbling")
                .withKeySerde(TEXT).withValueSerde(COUNT).withRetention(spans[2]));
        KTable<Windowed<String>, String> hopping = grouped
            .windowedBy(TimeWindows.ofSizeAndGrace(spans[3], spans[5]).advanceBy(spans[4]))
            .reduce((before, now) -> now, Materialized.<String, String, WindowStore<Bytes, byte[]>>as("hopping")
                .withKeySerde(TEXT).withValueSerde(TEXT).withRetention(spans[6]));
        KTable<Windowed<String>, Long> sessions = grouped
            .windowedBy(SessionWindows.ofInactivityGapAndGrace(spans[7], spans[8]))
            .count(Materialized.<String, Long, SessionStore<Bytes, byte[]>>as("session")
                .withKeySerde(TEXT).withValueSerde(COUNT).withRetention(spans[9]));
        Serde<Windowed<String>> minutes = WindowedSerdes.timeWindowedSerdeFrom(String.class, spans[0].toMillis());
        Serde<Windowed<String>> hops = WindowedSerdes.timeWindowedSerdeFrom(String.class, spans[3].toMillis());
        Serde<Windowed<String>> visits = WindowedSerdes.sessionWindowedSerdeFrom(String.class);
        tumbling.toStream().to(id + "-tumbling", Produced.with(minutes, COUNT));
        hopping.toStream().to(id + "-hopping", Produced.with(hops, TEXT));
        sessions.toStream().to(id + "-session", Produced.with(visits, COUNT));
        // The last child: it sees a record after the aggregations have.
        records.foreach((key, value) -> processed.incrementAndGet());
    }

    private boolean runs() {
        return streams.state() == KafkaStreams.State.RUNNING;
    }

    private String records() {
        return "{\"records\":" + (runs() ? processed.get() : -1) + "}";
    }

    private String stores() {
        long count = processed.get();
        if (!runs()) {
            return records();
        }
        return "{\"records\":" + count
            + ",\"tumbling\":" + json(store("tumbling", QueryableStoreTypes.<String, Long>windowStore()).all())
            + ",\"hopping\":" + json(store("hopping", QueryableStoreTypes.<String, String>windowStore()).all())
            + ",\"session\":"
            + json(store("session", QueryableStoreTypes.<String, Long>sessionStore()).fetch(null, null)) + "}";
    }

    private <T> T store(String name, QueryableStoreType<T> type) {
        return streams.store(StoreQueryParameters.fromNameAndType(name, type));
    }

    private String read(String[] words) {
        String topic = words[2];
        return switch (words[1]) {
            case "session" -> read(topic, new SessionWindowedDeserializer<>(new StringDeserializer()));
            default -> read(
                topic, new TimeWindowedDeserializer<>(new StringDeserializer(), Long.parseLong(words[3])));
        };
    }

    private String read(String topic, Deserializer<Windowed<String>> keys) {
        Properties settings = new Properties();
        settings.put(ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap);
        settings.put(ConsumerConfig.ISOLATION_LEVEL_CONFIG, "read_committed");
        Map<String, String> found = new TreeMap<>();
        long records = 0;
        try (KafkaConsumer<Windowed<String>, Long> consumer =
                new KafkaConsumer<>(settings, keys, new LongDeserializer())) {
            List<TopicPartition> partitions = new ArrayList<>();
            consumer.partitionsFor(topic).forEach(each -> partitions.add(new TopicPartition(topic, each.partition())));
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
            while (partitions.stream().anyMatch(each -> consumer.position(each) < ends.get(each))) {
                for (ConsumerRecord<Windowed<String>, Long> each : consumer.poll(Duration.ofMillis(100))) {
                    records++;
                    found.put(window(each.key()), String.valueOf(each.value()));
                }
            }
        }
        found.values().removeIf("null"::equals);
        List<String> rows = new ArrayList<>();
        found.forEach((window, value) -> rows.add(window + value + "]"));
        return "{\"records\":" + records + ",\"windows\":[" + String.join(",", rows) + "]}";
    }

    private static <V> String json(KeyValueIterator<Windowed<String>, V> windows) {
        List<String> rows = new ArrayList<>();
        try (windows) {
            windows.forEachRemaining(each -> rows.add(
                window(each.key) + (each.value instanceof String ? "\"" + each.value + "\"" : each.value) + "]"));
        }
        return "[" + String.join(",", rows) + "]";
    }

    /** The beginning of a row: the keys and values of the test need no escapes. */
    private static String window(Windowed<String> key) {
        return "[\"" + key.key() + "\"," + key.window().start() + "," + key.window().end() + ",";
    }

    public static void main(String[] arguments) throws Exception {
        WindowedApplication application = new WindowedApplication(arguments);
        application.streams.start();
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in));
        for (String request = requests.readLine(); request != null; request = requests.readLine()) {
            String[] words = request.split(" ");
            System.out.println(switch (words[0]) {
                case "records" -> application.records();
                case "stores" -> application.stores();
                default -> application.read(words);
            });
        }
        application.streams.close(Duration.ofSeconds(5));
    }
}
