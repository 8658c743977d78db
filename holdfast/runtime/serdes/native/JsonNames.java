package holdfast.functions;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The names of columns or fields. An upper-case name matches names in any case, unless they are themselves the name of
 * a column; any other name matches exactly.
 */
final class JsonNames {
    private static final int MOST_REMEMBERED = 1000;

    private final String[] names;
    private final JsonType[] types;
    private final Map exact = new HashMap();
    private final ConcurrentHashMap others = new ConcurrentHashMap();

    /** `fields` are nodes `{"name": ..., "type": ...}`. */
    JsonNames(JsonNode fields) {
        names = new String[fields.size()];
        types = new JsonType[fields.size()];
        for (int i = 0; i < names.length; i++) {
            JsonNode field = (JsonNode) fields.get(i);
            names[i] = field.get("name").asText();
            types[i] = JsonType.of(field.get("type"));
            exact.put(names[i], Integer.valueOf(i));
        }
    }

    int size() {
        return names.length;
    }

    JsonType type(int index) {
        return types[index];
    }

    /** The index of the column with a name; negative if there is none. */
    int indexOf(String name) {
        Object found = exact.get(name);
        if (found == null) {
            found = others.get(name);
        }
        if (found == null) {
            found = exact.get(name.toUpperCase(Locale.ROOT));
            found = found == null ? Integer.valueOf(-1) : found;
            if (others.size() < MOST_REMEMBERED) {
                others.put(name, found);
            }
        }
        return ((Integer) found).intValue();
    }

    Found found() {
        return new Found();
    }

    /** The values found in one object. */
    final class Found {
        private final Object[] values = new Object[names.length];
        private final String[] spellings = new String[names.length];
        private Map[] several;

        /** Add a value. Of several with the same spelling, the last one counts. */
        void put(int index, String spelling, Object value) {
            String first = spellings[index];
            if (first == null || (several == null || several[index] == null) && first.equals(spelling)) {
                spellings[index] = spelling;
                values[index] = value;
                return;
            }
            if (several == null) {
                several = new Map[names.length];
            }
            if (several[index] == null) {
                several[index] = new TreeMap();
                several[index].put(first, values[index]);
            }
            several[index].put(spelling, value);
        }

        /** Of several spellings, the name itself comes first, then the others in their order; nulls do not count. */
        Object[] values() {
            for (int i = 0; several != null && i < names.length; i++) {
                if (several[i] != null) {
                    values[i] = several[i].get(names[i]);
                    for (Object other : several[i].values()) {
                        values[i] = values[i] == null ? other : values[i];
                    }
                }
            }
            return values;
        }
    }
}
