package dev.nereid.distribution;

import java.time.Duration;
import java.util.Locale;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/** Reads the values of flags. What they throw says what was expected. */
final class FlagValues {
    private static final int LAST_PORT = 65_535;

    private FlagValues() {}

    /** Reads a truth value as the reference server does. Immutable. */
    static final class Truth implements ITypeConverter<Boolean> {
        @Override
        public Boolean convert(String value) {
            return switch (value.toLowerCase(Locale.ROOT)) {
                case "true", "on", "1" -> true;
                case "false", "off", "0" -> false;
                default -> throw new TypeConversionException("true, on, 1, false, off or 0");
            };
        }
    }

    /** Reads a port, 0 standing for any that is free. Immutable. */
    static final class Port implements ITypeConverter<Integer> {
        @Override
        public Integer convert(String value) {
            return (int) whole(value, 0, LAST_PORT, "a port from 0 to 65535, 0 for any that is free");
        }
    }

    /** Reads a number of something that there must be. Immutable. */
    static final class Count implements ITypeConverter<Integer> {
        @Override
        public Integer convert(String value) {
            return (int) whole(value, 1, Integer.MAX_VALUE, "a whole number, 1 or more");
        }
    }

    /** Reads a size of a text. Immutable. */
    static final class JsonBytes implements ITypeConverter<Integer> {
        @Override
        public Integer convert(String value) {
            return (int) whole(value, 1, Integer.MAX_VALUE, "a number of bytes from 1 to " + Integer.MAX_VALUE);
        }
    }

    /** Reads a number of seconds; less than none is none. Immutable. */
    static final class Seconds implements ITypeConverter<Integer> {
        @Override
        public Integer convert(String value) {
            long seconds = whole(value, Integer.MIN_VALUE, Integer.MAX_VALUE, "a whole number of seconds");
            return (int) Math.max(0, seconds);
        }
    }

    /** Reads a time in milliseconds. Immutable. */
    static final class Millis implements ITypeConverter<Duration> {
        @Override
        public Duration convert(String value) {
            return Duration.ofMillis(whole(value, 1, Integer.MAX_VALUE, "a whole number of milliseconds, 1 or more"));
        }
    }

    /** Reads how much more than usual is logged; truth values stand for 1 and 0. Immutable. */
    static final class Verbosity implements ITypeConverter<Integer> {
        @Override
        public Integer convert(String value) {
            return switch (value.toLowerCase(Locale.ROOT)) {
                case "true", "on" -> 1;
                case "false", "off" -> 0;
                default -> (int) whole(value, 0, Integer.MAX_VALUE, "a whole number, 0 or more");
            };
        }
    }

    /** Accepts the one way to control models that there is. Immutable. */
    static final class ControlMode implements ITypeConverter<String> {
        @Override
        public String convert(String value) {
            if (!value.equalsIgnoreCase("none")) {
                throw new TypeConversionException("none, the only mode that this version has");
            }
            return "none";
        }
    }

    /** Reads {@code [backend,]key=value}. Immutable. */
    static final class BackendSettings implements ITypeConverter<BackendSetting> {
        @Override
        public BackendSetting convert(String value) {
            int comma = value.indexOf(',');
            int equal = value.indexOf('=', comma + 1);
            if (equal <= comma + 1 || comma == 0) {
                throw new TypeConversionException("[backend,]key=value");
            }
            return new BackendSetting(
                    comma < 0 ? "" : value.substring(0, comma),
                    value.substring(comma + 1, equal),
                    value.substring(equal + 1));
        }
    }

    /**
     * A setting for one backend, or for all.
     *
     * @param backend the backend's name; empty for all
     * @param key the name of the setting
     * @param value its value
     */
    record BackendSetting(String backend, String key, String value) {}

    private static long whole(String value, long least, long most, String expected) {
        try {
            long number = Long.parseLong(value.strip());
            if (number >= least && number <= most) {
                return number;
            }
        } catch (NumberFormatException ignored) {
            // answered below, together with numbers out of range
        }
        throw new TypeConversionException(expected);
    }
}
