package holdfast.functions;

import com.fasterxml.jackson.core.JsonEncoding;
import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.databind.JsonNode;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.ArrayBasedMapData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * How values of a type are read. `read` takes the value at the parser's token, and leaves the parser at its last one;
 * `typed` makes Spark's value of what `read` returned. They are apart because a name may occur several times in an
 * object: each occurrence is read, and only the chosen one must be a value of the type.
 */
abstract class JsonType {
    /** Throws `Unreadable` if no value of the type has such a token; `IOException` if the text is not JSON. */
    abstract Object read(JsonParser parser) throws IOException;

    /** Throws `Unreadable` if a scalar in the value is not one of its type. */
    abstract Object typed(Object value);

    /** The type of a node `{"kind": ..., ...}` of a specification. */
    static JsonType of(JsonNode node) {
        String kind = node.get("kind").asText();
        if (kind.equals("ARRAY")) {
            return new Elements(of(node.get("of")));
        }
        if (kind.equals("MAP")) {
            return new Entries(of(node.get("of")));
        }
        if (kind.equals("STRUCT")) {
            return new Fields(new JsonNames(node.get("fields")));
        }
        if (kind.equals("DECIMAL")) {
            int precision = node.get("precision").asInt();
            int scale = node.get("scale").asInt();
            return ScalarText.isWide(precision) ? (JsonType) new WideDecimal(precision, scale)
                : (JsonType) new Price(precision, scale);
        }
        return kind.equals("BOOLEAN") ? (JsonType) new Flag() : (JsonType) new Scalar(kind);
    }

    static final class Flag extends JsonType {
        Object read(JsonParser parser) throws IOException {
            JsonToken token = parser.currentToken();
            if (token == JsonToken.VALUE_NULL) {
                return null;
            }
            if (token != JsonToken.VALUE_TRUE && token != JsonToken.VALUE_FALSE) {
                throw Unreadable.INSTANCE;
            }
            return Boolean.valueOf(token == JsonToken.VALUE_TRUE);
        }

        Object typed(Object value) {
            return value;
        }
    }

    /** A DECIMAL with digits to spare, which is never converted to a double. */
    static final class Price extends JsonType {
        private final int precision;
        private final int scale;

        Price(int precision, int scale) {
            this.precision = precision;
            this.scale = scale;
        }

        Object read(JsonParser parser) throws IOException {
            JsonToken token = parser.currentToken();
            try {
                switch (token) {
                    case VALUE_NULL:
                        return null;
                    case VALUE_NUMBER_INT:
                    case VALUE_NUMBER_FLOAT:
                        return ScalarText.wider(parser.getDecimalValue(), precision, scale);
                    case VALUE_STRING:
                        String text = parser.getText().replace(",", "");
                        return ScalarText.wider(new BigDecimal(text), precision, scale);
                    default:
                        throw Unreadable.INSTANCE;
                }
            } catch (NumberFormatException notANumber) {
                throw Unreadable.INSTANCE;
            }
        }

        Object typed(Object value) {
            return value == null ? null : ScalarText.fitted((BigDecimal) value, precision, scale);
        }
    }

    /** A DECIMAL without digits to spare. */
    static final class WideDecimal extends JsonType {
        private final int precision;
        private final int scale;

        WideDecimal(int precision, int scale) {
            this.precision = precision;
            this.scale = scale;
        }

        Object read(JsonParser parser) throws IOException {
            return text(parser);
        }

        Object typed(Object value) {
            return value == null ? null : ScalarText.wide((String) value, precision, scale);
        }
    }

    /** Any other scalar: a `Long` if it is a number that fits, otherwise its text. */
    static final class Scalar extends JsonType {
        private static final int STRING = 0;
        private static final int INTEGER = 1;
        private static final int BIGINT = 2;
        private static final int DOUBLE = 3;
        private static final int BYTES = 4;
        private static final int DATE = 5;
        private static final int TIME = 6;
        private static final int TIMESTAMP = 7;
        private static final String[] KINDS = {
            "STRING", "INTEGER", "BIGINT", "DOUBLE", "BYTES", "DATE", "TIME", "TIMESTAMP"};

        private final int kind;

        Scalar(String name) {
            int found = 0;
            while (!KINDS[found].equals(name)) {
                found++;
            }
            kind = found;
        }

        Object read(JsonParser parser) throws IOException {
            JsonToken token = parser.currentToken();
            if (kind == STRING || token == JsonToken.VALUE_STRING) {
                return text(parser);
            }
            if (token == JsonToken.VALUE_NUMBER_FLOAT) {
                double number = parser.getDoubleValue();
                return finite(number) ? Double.toString(number) : quoted(number);
            }
            if (token == JsonToken.VALUE_NUMBER_INT && kind != BYTES
                && parser.getNumberType() != JsonParser.NumberType.BIG_INTEGER) {
                return Long.valueOf(parser.getLongValue());
            }
            return text(parser);
        }

        Object typed(Object value) {
            if (value == null) {
                return null;
            }
            switch (kind) {
                case STRING:
                    return UTF8String.fromString((String) value);
                case BYTES:
                    return ScalarText.base64((String) value);
                case DOUBLE:
                    return Double.valueOf(value instanceof Long
                        ? ((Long) value).doubleValue() : ScalarText.number((String) value));
                case INTEGER:
                    return Integer.valueOf(integer(value));
                case BIGINT:
                    return Long.valueOf(bigint(value));
                case DATE:
                    return Integer.valueOf(ScalarText.date(bigint(value)));
                case TIME:
                    return Integer.valueOf(ScalarText.time(bigint(value)));
                default:
                    return Long.valueOf(ScalarText.timestamp(bigint(value)));
            }
        }

        private static long bigint(Object value) {
            return value instanceof Long ? ((Long) value).longValue() : ScalarText.bigint((String) value);
        }

        private static int integer(Object value) {
            if (!(value instanceof Long)) {
                return ScalarText.integer((String) value);
            }
            long number = ((Long) value).longValue();
            if (number != (int) number) {
                throw Unreadable.INSTANCE;
            }
            return (int) number;
        }
    }

    static final class Elements extends JsonType {
        private final JsonType type;

        Elements(JsonType type) {
            this.type = type;
        }

        Object read(JsonParser parser) throws IOException {
            if (!starts(parser, JsonToken.START_ARRAY)) {
                return null;
            }
            List found = new ArrayList();
            while (parser.nextToken() != JsonToken.END_ARRAY) {
                found.add(type.read(parser));
            }
            return found.toArray();
        }

        Object typed(Object value) {
            return value == null ? null : new GenericArrayData(each(type, (Object[]) value));
        }
    }

    /** A MAP whose keys are names; the last of equal names wins. */
    static final class Entries extends JsonType {
        private final JsonType type;

        Entries(JsonType type) {
            this.type = type;
        }

        Object read(JsonParser parser) throws IOException {
            if (!starts(parser, JsonToken.START_OBJECT)) {
                return null;
            }
            Map found = new LinkedHashMap();
            while (parser.nextToken() != JsonToken.END_OBJECT) {
                String name = parser.currentName();
                parser.nextToken();
                found.put(name, type.read(parser));
            }
            return found;
        }

        Object typed(Object value) {
            if (value == null) {
                return null;
            }
            Map entries = (Map) value;
            Object[] names = new Object[entries.size()];
            Iterator each = entries.keySet().iterator();
            for (int i = 0; i < names.length; i++) {
                names[i] = UTF8String.fromString((String) each.next());
            }
            Object[] values = each(type, entries.values().toArray());
            return new ArrayBasedMapData(new GenericArrayData(names), new GenericArrayData(values));
        }
    }

    static final class Fields extends JsonType {
        private final JsonNames names;

        Fields(JsonNames names) {
            this.names = names;
        }

        Object read(JsonParser parser) throws IOException {
            if (!starts(parser, JsonToken.START_OBJECT)) {
                return null;
            }
            JsonNames.Found found = names.found();
            while (parser.nextToken() != JsonToken.END_OBJECT) {
                String name = parser.currentName();
                int index = names.indexOf(name);
                parser.nextToken();
                if (index < 0) {
                    parser.skipChildren();
                } else {
                    found.put(index, name, names.type(index).read(parser));
                }
            }
            return found.values();
        }

        Object typed(Object value) {
            if (value == null) {
                return null;
            }
            Object[] found = (Object[]) value;
            Object[] row = new Object[Math.max(1, found.length)];
            for (int i = 0; i < found.length; i++) {
                row[i] = names.type(i).typed(found[i]);
            }
            return new GenericInternalRow(row);
        }
    }

    private static Object[] each(JsonType type, Object[] values) {
        Object[] found = new Object[values.length];
        for (int i = 0; i < values.length; i++) {
            found[i] = type.typed(values[i]);
        }
        return found;
    }

    /** Whether a nested value starts here; false for null. */
    private static boolean starts(JsonParser parser, JsonToken start) throws IOException {
        JsonToken token = parser.currentToken();
        if (token != start && token != JsonToken.VALUE_NULL) {
            throw Unreadable.INSTANCE;
        }
        return token == start;
    }

    /** A text; a number as it is written; anything else as JSON text; null for null. */
    private static String text(JsonParser parser) throws IOException {
        switch (parser.currentToken()) {
            case VALUE_NULL:
                return null;
            case VALUE_STRING:
                return parser.getText();
            case VALUE_NUMBER_INT:
                return parser.getNumberType() == JsonParser.NumberType.BIG_INTEGER
                    ? parser.getBigIntegerValue().toString() : Long.toString(parser.getLongValue());
            case VALUE_NUMBER_FLOAT:
                return parser.isNaN() ? quoted(parser.getDoubleValue()) : parser.getText();
            default:
                ByteArrayOutputStream bytes = new ByteArrayOutputStream();
                JsonGenerator generator = DecodeJson.FACTORY.createGenerator(bytes, JsonEncoding.UTF8);
                try {
                    generator.copyCurrentStructure(parser);
                } finally {
                    generator.close();
                }
                return new String(bytes.toByteArray(), StandardCharsets.UTF_8);
        }
    }

    private static boolean finite(double number) {
        return !Double.isNaN(number) && !Double.isInfinite(number);
    }

    /** As Jackson writes a number that JSON does not have. */
    private static String quoted(double number) {
        return "\"" + number + "\"";
    }
}
