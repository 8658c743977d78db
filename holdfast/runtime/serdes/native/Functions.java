package holdfast.functions;

import org.apache.spark.sql.catalyst.analysis.NoSuchFunctionException;
import org.apache.spark.sql.connector.catalog.FunctionCatalog;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * The functions that decode records. The name of decode_json contains its specification, because its result type
 * depends on it, and Spark asks for the result type before it knows any argument.
 */
public final class Functions implements FunctionCatalog {
    private static final String DECODE_JSON = "decode_json ";

    private String name;

    public void initialize(String name, CaseInsensitiveStringMap options) {
        this.name = name;
    }

    public String name() {
        return name;
    }

    public Identifier[] listFunctions(String[] namespace) {
        return new Identifier[0];
    }

    public UnboundFunction loadFunction(Identifier identifier) throws NoSuchFunctionException {
        String function = identifier.name();
        if (function.startsWith(DECODE_JSON)) {
            return new DecodeJson(function.substring(DECODE_JSON.length()));
        }
        if (function.equals("int_at")) {
            return new IntAt();
        }
        if (function.equals("long_at")) {
            return new LongAt();
        }
        if (function.equals("double_at")) {
            return new DoubleAt();
        }
        throw new NoSuchFunctionException(identifier);
    }
}
