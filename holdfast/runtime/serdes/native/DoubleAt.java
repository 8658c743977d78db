package holdfast.functions;

import org.apache.spark.sql.types.DataTypes;

public final class DoubleAt extends NumberAt {
    public DoubleAt() {
        super("double_at", DataTypes.DoubleType);
    }

    public static Double invoke(byte[] bytes, int fromEnd) {
        return has(bytes, fromEnd) ? Double.valueOf(Double.longBitsToDouble(read(bytes, fromEnd, 8))) : null;
    }
}
