package holdfast.functions;

import java.math.BigDecimal;
import java.math.RoundingMode;
import java.util.Base64;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.catalyst.expressions.UnBase64$;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Scalar values from text, by the rules of `scalar_text.py`, with Spark's own conversions: a native function and SQL
 * give the same values. Throws `Unreadable` for a text that is not a value of the type.
 */
final class ScalarText {
    static final int MAX_PRECISION = 38;
    private static final int SPARE_DIGITS = 6;
    private static final BigDecimal INT_END = new BigDecimal("2147483648");
    private static final BigDecimal INT_START = new BigDecimal("-2147483649");
    private static final BigDecimal LONG_END = new BigDecimal("9223372036854775808");
    private static final BigDecimal LONG_START = new BigDecimal("-9223372036854775809");
    private static final Pattern NUMBER = Pattern.compile(
        "^([-+]?)([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][-+]?[0-9]+)?$");

    private ScalarText() {}

    static int integer(String text) {
        UTF8String bytes = UTF8String.fromString(text);
        UTF8String.IntWrapper found = new UTF8String.IntWrapper();
        return bytes.toInt(found) ? found.value : truncated(bytes, INT_START, INT_END).intValue();
    }

    static long bigint(String text) {
        UTF8String bytes = UTF8String.fromString(text);
        UTF8String.LongWrapper found = new UTF8String.LongWrapper();
        return bytes.toLong(found) ? found.value : truncated(bytes, LONG_START, LONG_END).longValue();
    }

    /** A number between two others, both exclusive, that has a fraction or an exponent; rounded as DECIMAL(38, 9). */
    private static BigDecimal truncated(UTF8String text, BigDecimal start, BigDecimal end) {
        Decimal number = Decimal.fromString(text);
        number = number == null ? null : number.toPrecision(MAX_PRECISION, 9, Decimal.ROUND_HALF_UP(), true, null);
        BigDecimal found = number == null ? null : number.toJavaBigDecimal();
        if (found == null || found.compareTo(start) <= 0 || found.compareTo(end) >= 0) {
            throw Unreadable.INSTANCE;
        }
        return found;
    }

    static double number(String text) {
        try {
            return Double.parseDouble(text);
        } catch (NumberFormatException notANumber) {
            String name = text.trim().toLowerCase(java.util.Locale.ROOT);
            if (name.equals("inf") || name.equals("+inf") || name.equals("infinity") || name.equals("+infinity")) {
                return Double.POSITIVE_INFINITY;
            }
            if (name.equals("-inf") || name.equals("-infinity")) {
                return Double.NEGATIVE_INFINITY;
            }
            if (name.equals("nan")) {
                return Double.NaN;
            }
            throw Unreadable.INSTANCE;
        }
    }

    static byte[] base64(String text) {
        if (!UnBase64$.MODULE$.isValidBase64(UTF8String.fromString(text))) {
            throw Unreadable.INSTANCE;
        }
        return Base64.getMimeDecoder().decode(text);
    }

    static int date(long days) {
        return (int) within(days, -2147483646L, 2147483646L);
    }

    static int time(long milliseconds) {
        return (int) within(milliseconds, 0, 86400000L);
    }

    static long timestamp(long milliseconds) {
        return within(milliseconds, -9223372022400000L, 9223372036854774L) * 1000;
    }

    private static long within(long number, long first, long last) {
        if (number < first || number > last) {
            throw Unreadable.INSTANCE;
        }
        return number;
    }

    /** Whether a DECIMAL is too wide to detect rounding with a wider type. */
    static boolean isWide(int precision) {
        return precision > MAX_PRECISION - SPARE_DIGITS;
    }

    /** A number as the widest type with as many digits before the point as a DECIMAL that is not wide. */
    static BigDecimal wider(BigDecimal number, int precision, int scale) {
        int most = MAX_PRECISION - precision + scale;
        if (number.signum() != 0 && number.precision() - (long) number.scale() > precision - scale + 1L) {
            throw Unreadable.INSTANCE;
        }
        if (number.scale() > most && number.scale() - (long) number.precision() > most + 1L) {
            return BigDecimal.ZERO.setScale(most);
        }
        BigDecimal found = number.setScale(most, RoundingMode.HALF_UP);
        if (found.precision() > MAX_PRECISION) {
            throw Unreadable.INSTANCE;
        }
        return found;
    }

    /** A DECIMAL that is not wide from one of the wider type. */
    static Decimal fitted(BigDecimal number, int precision, int scale) {
        BigDecimal found = number.setScale(scale, RoundingMode.HALF_UP);
        if (found.compareTo(number) != 0 || found.precision() > precision) {
            throw Unreadable.INSTANCE;
        }
        return Decimal.apply(found, precision, scale);
    }

    /** A wide DECIMAL from text. */
    static Decimal wide(String text, int precision, int scale) {
        Matcher number = NUMBER.matcher(text);
        if (!number.find()) {
            throw Unreadable.INSTANCE;
        }
        String digits = number.group(2);
        int point = digits.indexOf('.');
        int end = digits.length();
        while (point >= 0 && end > point + 1 && digits.charAt(end - 1) == '0') {
            end--;
        }
        long fraction = point < 0 ? 0 : end - point - 1;
        String exponent = number.group(3);
        Decimal found = null;
        if (fraction - (exponent == null ? 0 : shift(exponent)) <= scale) {
            found = Decimal.fromString(UTF8String.fromString(text));
            found = found == null ? null : found.toPrecision(precision, scale, Decimal.ROUND_HALF_UP(), true, null);
        }
        if (found == null) {
            throw Unreadable.INSTANCE;
        }
        return found;
    }

    /** The number of an exponent; 0 for one that is no INTEGER. */
    private static int shift(String exponent) {
        try {
            return Integer.parseInt(exponent.substring(1));
        } catch (NumberFormatException tooLarge) {
            return 0;
        }
    }
}
