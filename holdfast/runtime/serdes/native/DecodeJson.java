package holdfast.functions;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonFactoryBuilder;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.JsonStreamContext;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.core.json.JsonReadFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.ByteArrayInputStream;
import java.io.CharConversionException;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.catalog.functions.BoundFunction;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Decodes the JSON keys or values of records: a struct of the columns `f0, f1, ...` and the `reason` why the record
 * cannot be decoded, in which case the columns are null. The specification is JSON:
 *
 * <pre>
 * {"side": "key" or "value", "wrapped": true, "schema": "f0 INT, ..., reason STRING",
 *  "columns": [{"name": "ID", "column": "ID", "shown": "INTEGER", "type": {"kind": "INTEGER"}}, ...]}
 * </pre>
 *
 * The values are those of Spark's `from_json` and casts: a test compares the two.
 */
public final class DecodeJson implements UnboundFunction, ScalarFunction, Serializable {
    static final JsonFactory FACTORY = ((JsonFactoryBuilder) new JsonFactoryBuilder()
        .enable(JsonReadFeature.ALLOW_NON_NUMERIC_NUMBERS)).build();
    private static final byte[] NULL = {'n', 'u', 'l', 'l'};
    private static final byte[] BEFORE = {'{', '"', 'v', '"', ':'};

    private final String specification;
    private final transient JsonNames names;
    private final transient JsonNode columns;
    private final transient String side;
    private final transient boolean wrapped;
    private final transient StructType schema;

    public DecodeJson(String specification) {
        this.specification = specification;
        JsonNode found;
        try {
            found = (JsonNode) new ObjectMapper().readTree(specification);
        } catch (JsonProcessingException error) {
            throw new IllegalArgumentException(error.getMessage());
        }
        columns = found.get("columns");
        names = new JsonNames(columns);
        side = found.get("side").asText();
        wrapped = found.get("wrapped").asBoolean();
        schema = StructType.fromDDL(found.get("schema").asText());
    }

    /** A copy that has been sent to an executor parses the specification again. */
    Object readResolve() {
        return new DecodeJson(specification);
    }

    public BoundFunction bind(StructType arguments) {
        return this;
    }

    public String name() {
        return "decode_json";
    }

    public String description() {
        return name();
    }

    public DataType[] inputTypes() {
        return new DataType[] {DataTypes.BinaryType};
    }

    public DataType resultType() {
        return schema;
    }

    public boolean isResultNullable() {
        return false;
    }

    public String canonicalName() {
        return "holdfast.decode_json " + specification;
    }

    public boolean equals(Object other) {
        return other instanceof DecodeJson && ((DecodeJson) other).specification.equals(specification);
    }

    public int hashCode() {
        return specification.hashCode();
    }

    /** Called by Spark's generated code. */
    public InternalRow invoke(byte[] record) {
        Object[] row = new Object[names.size() + 1];
        if (record != null && !Arrays.equals(record, NULL)) {
            String reason = decode(record, row);
            if (reason != null) {
                Arrays.fill(row, null);
                row[names.size()] = UTF8String.fromString(reason);
            }
        }
        return new GenericInternalRow(row);
    }

    /** Fill the row; returns the reason if that is not possible. */
    private String decode(byte[] record, Object[] row) {
        if (record.length == 0) {
            return "the " + side + " is empty";
        }
        if (!UTF8String.fromBytes(record).isValid()) {
            return "the " + side + " is not UTF-8";
        }
        try {
            JsonParser parser = parser(wrapped ? record : wrap(record));
            try {
                return parser.nextToken() == JsonToken.START_OBJECT ? fill(parser, row) : notJson();
            } finally {
                parser.close();
            }
        } catch (JsonProcessingException error) {
            return notJson();
        } catch (CharConversionException error) {
            return notJson();
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
    }

    private String fill(JsonParser parser, Object[] row) throws IOException {
        JsonNames.Found found = names.found();
        JsonStreamContext root = parser.getParsingContext();
        int unreadable = Integer.MAX_VALUE;
        while (parser.nextToken() != JsonToken.END_OBJECT) {
            String name = parser.currentName();
            int index = names.indexOf(name);
            parser.nextToken();
            if (index < 0) {
                parser.skipChildren();
                continue;
            }
            try {
                found.put(index, name, names.type(index).read(parser));
            } catch (Unreadable error) {
                unreadable = Math.min(unreadable, index);
                while (parser.getParsingContext() != root) {
                    parser.nextToken();
                }
            }
        }
        Object[] values = found.values();
        for (int i = 0; i < values.length && unreadable == Integer.MAX_VALUE; i++) {
            try {
                row[i] = names.type(i).typed(values[i]);
            } catch (Unreadable error) {
                unreadable = i;
            }
        }
        return unreadable == Integer.MAX_VALUE ? null : cannotBeRead(unreadable);
    }

    private String cannotBeRead(int index) {
        JsonNode column = (JsonNode) columns.get(index);
        return "column \"" + column.get("column").asText() + "\" cannot be read as " + column.get("shown").asText();
    }

    private String notJson() {
        return "the " + side + " is not " + (wrapped ? "a JSON object" : "JSON");
    }

    /** A value that is not in an object, in one. */
    private static byte[] wrap(byte[] record) {
        byte[] wrapped = new byte[record.length + BEFORE.length + 1];
        System.arraycopy(BEFORE, 0, wrapped, 0, BEFORE.length);
        System.arraycopy(record, 0, wrapped, BEFORE.length, record.length);
        wrapped[wrapped.length - 1] = '}';
        return wrapped;
    }

    /** A parser of UTF-8: Jackson would take bytes that start with a mark or with zeros for another encoding. */
    private static JsonParser parser(byte[] text) throws IOException {
        boolean plain = text[0] > 0;
        for (int i = 1; i < 4 && i < text.length; i++) {
            plain = plain && text[i] != 0;
        }
        return plain ? FACTORY.createParser(text) : FACTORY.createParser(
            new InputStreamReader(new ByteArrayInputStream(text), StandardCharsets.UTF_8));
    }
}
