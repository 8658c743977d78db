package holdfast.functions;

import org.apache.spark.sql.types.DataTypes;

public final class LongAt extends NumberAt {
    public LongAt() {
        super("long_at", DataTypes.LongType);
    }

    public static Long invoke(byte[] bytes, int fromEnd) {
        return has(bytes, fromEnd) ? Long.valueOf(read(bytes, fromEnd, 8)) : null;
    }
}
