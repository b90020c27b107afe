package dev.nereid.spi;

import java.util.Locale;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Converts parameters with units. Static functions only. */
final class ParameterUnits {
    private static final Pattern TIME = Pattern.compile("(\\d{1,19})(ns|us|ms|s|m|h|d)?");
    private static final Pattern BYTES = Pattern.compile("(\\d{1,19})(?:([kKmMgGtT])(?:iB)?)?");
    private static final String POWERS = "kmgt";
    private static final int BITS_OF_A_POWER = 10;

    /** The result for what does not fit. */
    private static final long NONE = -1;

    private static final Map<String, TimeUnit> UNITS = Map.of(
            "ns", TimeUnit.NANOSECONDS,
            "us", TimeUnit.MICROSECONDS,
            "ms", TimeUnit.MILLISECONDS,
            "s", TimeUnit.SECONDS,
            "m", TimeUnit.MINUTES,
            "h", TimeUnit.HOURS,
            "d", TimeUnit.DAYS);

    private ParameterUnits() {}

    /** Returns a length of time in nanoseconds. */
    static long nanos(Parameters from, String name, Object value, TimeUnit standard) {
        long nanos = switch (value) {
            case Long number -> nanos(number, standard);
            case String text -> nanos(text, standard);
            default -> NONE;
        };
        if (nanos < 0) {
            throw ParameterReads.unexpected(
                    from,
                    name,
                    value,
                    "0 or more " + standard.name().toLowerCase(Locale.ROOT)
                            + ", or a number with ns, us, ms, s, m, h or d; at most 292 years");
        }
        return nanos;
    }

    private static long nanos(String text, TimeUnit standard) {
        Matcher time = TIME.matcher(text);
        if (!time.matches()) {
            return NONE;
        }
        String unit = time.group(2);
        return nanos(number(time.group(1)), unit == null ? standard : UNITS.getOrDefault(unit, standard));
    }

    private static long nanos(long number, TimeUnit unit) {
        long nanos = unit.toNanos(number); // as many as fit
        return unit.convert(nanos, TimeUnit.NANOSECONDS) == number ? nanos : NONE;
    }

    /** Returns a number of bytes. */
    static long bytes(Parameters from, String name, Object value) {
        long bytes = switch (value) {
            case Long number -> number;
            case String text -> bytes(text);
            default -> NONE;
        };
        if (bytes < 0) {
            throw ParameterReads.unexpected(from, name, value, "0 or more bytes, or a number with K, M, G or T");
        }
        return bytes;
    }

    private static long bytes(String text) {
        Matcher size = BYTES.matcher(text);
        if (!size.matches()) {
            return NONE;
        }
        long number = number(size.group(1));
        String unit = size.group(2);
        int power = unit == null ? 0 : 1 + POWERS.indexOf(Character.toLowerCase(unit.charAt(0)));
        return number <= Long.MAX_VALUE >> (power * BITS_OF_A_POWER) ? number << (power * BITS_OF_A_POWER) : NONE;
    }

    /** Returns up to 19 digits as a number. */
    private static long number(String digits) {
        try {
            return Long.parseLong(digits);
        } catch (NumberFormatException _) { // 19 digits may be too many
            return NONE;
        }
    }
}
