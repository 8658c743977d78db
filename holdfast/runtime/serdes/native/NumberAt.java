package holdfast.functions;

import org.apache.spark.sql.connector.catalog.functions.BoundFunction;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/**
 * A function of bytes and a position: the big-endian number that starts so many bytes before the end. Null if there are
 * fewer bytes. Each kind has a static method `invoke`, which Spark's generated code calls.
 */
abstract class NumberAt implements UnboundFunction, ScalarFunction {
    private final String name;
    private final DataType type;

    NumberAt(String name, DataType type) {
        this.name = name;
        this.type = type;
    }

    /** The number of `width` bytes; the bytes must have it. */
    static long read(byte[] bytes, int fromEnd, int width) {
        long number = 0;
        int start = bytes.length - fromEnd;
        for (int i = start; i < start + width; i++) {
            number = number << 8 | bytes[i] & 255;
        }
        return number;
    }

    static boolean has(byte[] bytes, int fromEnd) {
        return bytes != null && bytes.length >= fromEnd;
    }

    public BoundFunction bind(StructType arguments) {
        return this;
    }

    public String name() {
        return name;
    }

    public String description() {
        return name;
    }

    public String canonicalName() {
        return "holdfast." + name;
    }

    public DataType[] inputTypes() {
        return new DataType[] {DataTypes.BinaryType, DataTypes.IntegerType};
    }

    public DataType resultType() {
        return type;
    }

    public boolean equals(Object other) {
        return other != null && other.getClass() == getClass();
    }

    public int hashCode() {
        return name.hashCode();
    }
}
