package holdfast.functions;

import org.apache.spark.sql.types.DataTypes;

public final class IntAt extends NumberAt {
    public IntAt() {
        super("int_at", DataTypes.IntegerType);
    }

    public static Integer invoke(byte[] bytes, int fromEnd) {
        return has(bytes, fromEnd) ? Integer.valueOf((int) read(bytes, fromEnd, 4)) : null;
    }
}
