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
        String expected = "0 or more " + standard.name().toLowerCase(Locale.ROOT)
                + ", or a number with ns, us, ms, s, m, h or d; at most 292 years";
        Matcher time = matched(TIME, from, name, value, expected);
        TimeUnit unit = time.group(2) == null ? standard : UNITS.getOrDefault(time.group(2), standard);
        long number = number(time.group(1), from, name, value, expected);
        long nanos = unit.toNanos(number);
        if (unit.convert(nanos, TimeUnit.NANOSECONDS) != number) { // as many as fit
            throw ParameterReads.unexpected(from, name, value, expected);
        }
        return nanos;
    }

    /** Returns a number of bytes. */
    static long bytes(Parameters from, String name, Object value) {
        String expected = "0 or more bytes, or a number with K, M, G or T";
        Matcher size = matched(BYTES, from, name, value, expected);
        long number = number(size.group(1), from, name, value, expected);
        int power = size.group(2) == null
                ? 0
                : 1 + POWERS.indexOf(Character.toLowerCase(size.group(2).charAt(0)));
        if (number > Long.MAX_VALUE >> (power * BITS_OF_A_POWER)) {
            throw ParameterReads.unexpected(from, name, value, expected);
        }
        return number << (power * BITS_OF_A_POWER);
    }

    private static Matcher matched(Pattern form, Parameters from, String name, Object value, String expected) {
        Matcher matcher = form.matcher(value instanceof Long || value instanceof String ? value.toString() : "");
        if (!matcher.matches()) {
            throw ParameterReads.unexpected(from, name, value, expected);
        }
        return matcher;
    }

    private static long number(String digits, Parameters from, String name, Object value, String expected) {
        try {
            return Long.parseLong(digits);
        } catch (NumberFormatException e) { // 19 digits may be too many
            throw ParameterReads.unexpected(from, name, value, expected);
        }
    }
}
