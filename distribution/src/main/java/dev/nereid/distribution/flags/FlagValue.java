package dev.nereid.distribution.flags;

import dev.nereid.distribution.process.StartException;
import dev.nereid.grpc.ResponseCompression;
import dev.nereid.server.host.HostSetting;
import dev.nereid.server.options.ModelControlMode;
import dev.nereid.server.options.RateLimitOptions;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Locale;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.function.Function;
import java.util.regex.Pattern;
import java.util.regex.PatternSyntaxException;
import java.util.stream.Stream;

/**
 * A type of flag values, with its parser. Immutable.
 *
 * @param label the placeholder of the value in the help text
 * @param expected the form of values, for errors
 * @param reader parses a value; empty if it is invalid
 * @param writer writes a value as the reader parses it, for the help text
 * @param <T> the parsed type
 */
public record FlagValue<T>(
        String label, String expected, Function<String, Optional<T>> reader, Function<T, Object> writer) {
    static final int MAX_PORT = 65_535;
    private static final Pattern URL = Pattern.compile("[A-Za-z][A-Za-z0-9+.-]*://.*", Pattern.DOTALL);
    private static final String PORT_EXPECTED = "a port from 0 to " + MAX_PORT + ", 0 for any that is free";

    /** A boolean in the forms of the reference server. */
    static final FlagValue<Boolean> TRUTH =
            new FlagValue<>("BOOL", "true, on, 1, false, off or 0", text -> switch (text.toLowerCase(Locale.ROOT)) {
                case "true", "on", "1" -> Optional.of(true);
                case "false", "off", "0" -> Optional.of(false);
                default -> Optional.empty();
            });

    /** Creates a type of values that are written as their {@code toString} is. */
    public FlagValue(String label, String expected, Function<String, Optional<T>> reader) {
        this(label, expected, reader, value -> value);
    }

    String text(T value) {
        return String.valueOf(writer.apply(value));
    }

    /** A port; {@link #checkPort} checks its range. */
    static final FlagValue<Integer> PORT =
            new FlagValue<>("PORT", PORT_EXPECTED, text -> whole(text, Integer.MIN_VALUE, Integer.MAX_VALUE));

    /** A count of at least 1. */
    static final FlagValue<Integer> COUNT =
            new FlagValue<>("N", "a whole number, 1 or more", text -> whole(text, 1, Integer.MAX_VALUE));

    /** A number of bytes up to 2 GiB. */
    static final FlagValue<Integer> TEXT_BYTES = new FlagValue<>(
            "BYTES", "a number of bytes from 1 to " + Integer.MAX_VALUE, text -> whole(text, 1, Integer.MAX_VALUE));

    /** A number of bytes, at least 1. */
    static final FlagValue<Long> BODY_BYTES = new FlagValue<>("BYTES", "a number of bytes, 1 or more", text -> {
        try {
            return Optional.of(Long.parseLong(text.strip())).filter(bytes -> bytes >= 1);
        } catch (NumberFormatException e) {
            return Optional.empty();
        }
    });

    /** A number of seconds; negative numbers mean 0. */
    public static final FlagValue<Duration> SECONDS = new FlagValue<>(
            "N",
            "a whole number of seconds",
            text -> whole(text, Integer.MIN_VALUE, Integer.MAX_VALUE)
                    .map(seconds -> Duration.ofSeconds(Math.max(0, seconds))),
            Duration::toSeconds);

    /** A duration in milliseconds, at least 1. */
    static final FlagValue<Duration> MILLIS = new FlagValue<>(
            "MS",
            "a whole number of milliseconds, 1 or more",
            text -> whole(text, 1, Integer.MAX_VALUE).map(Duration::ofMillis),
            Duration::toMillis);

    /** A limit in milliseconds; 0 for none. */
    static final FlagValue<Optional<Duration>> MILLIS_OR_NONE = new FlagValue<>(
            "MS",
            "a whole number of milliseconds, 0 or more",
            text -> whole(text, 0, Integer.MAX_VALUE).flatMap(number -> Optional.of(limit(Duration.ofMillis(number)))),
            limit -> limit.orElse(Duration.ZERO).toMillis());

    /** A count, 0 included. */
    static final FlagValue<Integer> NUMBER =
            new FlagValue<>("N", "a whole number, 0 or more", text -> whole(text, 0, Integer.MAX_VALUE));

    /** A limit; 0 for none. */
    public static final FlagValue<Long> AMOUNT =
            new FlagValue<>("N", "a whole number, 0 or more", text -> nonNegative(text));

    /** A limit in bytes; 0 for none. */
    static final FlagValue<Long> AMOUNT_OF_BYTES =
            new FlagValue<>("BYTES", "a number of bytes, 0 or more", text -> nonNegative(text));

    /** The number of gRPC threads for inference. */
    static final FlagValue<Integer> INFER_THREADS =
            new FlagValue<>("N", "a whole number from 2 to 128", text -> whole(text, 2, 128));

    static final FlagValue<ResponseCompression> COMPRESSION =
            constant("LEVEL", "none, low, medium or high", ResponseCompression.class);

    /** The verbosity of the log; booleans mean 1 and 0. */
    static final FlagValue<Integer> VERBOSITY =
            new FlagValue<>("N", "a whole number, 0 or more", text -> switch (text.toLowerCase(Locale.ROOT)) {
                case "true", "on" -> Optional.of(1);
                case "false", "off" -> Optional.of(0);
                default -> whole(text, 0, Integer.MAX_VALUE);
            });

    /** When models are loaded. */
    static final FlagValue<ModelControlMode> CONTROL_MODE =
            constant("MODE", "none, poll, explicit or demand", ModelControlMode.class);

    /** A setting for one backend, or for all. */
    static final FlagValue<BackendSetting> BACKEND_SETTING = new FlagValue<>(
            "[BACKEND,]KEY=VALUE",
            "--backend-config option format is '<backend name>,<setting>=<value>' or '<setting>=<value>'",
            BackendSetting::read);

    static final FlagValue<Setting> SETTING = new FlagValue<>("KEY=VALUE", "key=value", Setting::read);

    static final FlagValue<CacheSetting> CACHE_SETTING = new FlagValue<>(
            "CACHE,KEY=VALUE", "--cache-config option format is '<cache name>,<setting>=<value>'", CacheSetting::read);

    /** The processors of instance threads. */
    static final FlagValue<HostSetting> HOST_SETTING =
            new FlagValue<>("POLICY,SETTING=VALUE", HostSetting.EXPECTED, HostSetting::parse);

    /** Mode of the rate limiter: {@code true} if it schedules executions. */
    static final FlagValue<Boolean> RATE_LIMIT = new FlagValue<>(
            "MODE",
            "off or execution_count",
            text -> switch (text.toLowerCase(Locale.ROOT)) {
                case "off" -> Optional.of(false);
                case "execution_count" -> Optional.of(true);
                default -> Optional.empty();
            },
            limited -> limited ? "execution_count" : "off");

    /** The available count of a rate limiter resource. */
    static final FlagValue<RateLimitOptions.Resource> RATE_RESOURCE = new FlagValue<>(
            "NAME:COUNT[:DEVICE]",
            "name:count or name:count:device, both numbers whole and 0 or more",
            FlagValue::rateResource);

    /** A directory; its existence is checked where it is used. */
    public static final FlagValue<Path> DIRECTORY = new FlagValue<>("DIR", "a directory", text -> {
        try {
            return text.isEmpty() ? Optional.empty() : Optional.of(Path.of(text));
        } catch (InvalidPathException e) {
            return Optional.empty();
        }
    });

    /** A model repository: a directory, or the URL of a remote one. */
    static final FlagValue<String> REPOSITORY = new FlagValue<>(
            "DIR|URL",
            "a directory, or a URL such as s3://bucket/models",
            text -> Optional.of(text)
                    .filter(repository -> isUrl(repository)
                            || DIRECTORY.reader().apply(repository).isPresent()));

    /** A case-insensitive regular expression. */
    static final FlagValue<Pattern> PATTERN = new FlagValue<>("REGEX", "a regular expression", text -> {
        try {
            return Optional.of(Pattern.compile(text, Pattern.CASE_INSENSITIVE));
        } catch (PatternSyntaxException e) {
            return Optional.empty();
        }
    });
    /** A file; its existence is checked where it is read. */
    public static final FlagValue<Path> FILE = new FlagValue<>("FILE", "the name of a file", DIRECTORY.reader());

    /** Refuses a number outside of the range of ports. Called for the ports that are opened. */
    static void checkPort(String flag, int port) throws StartException {
        if (port < 0 || port > MAX_PORT) {
            throw new StartException(flag + ": '" + port + "' (expected: " + PORT_EXPECTED + ")");
        }
    }

    /** Returns whether a model repository is a URL; other texts are directories. */
    public static boolean isUrl(String repository) {
        return URL.matcher(repository).matches();
    }

    /** A non-empty text. */
    public static FlagValue<String> text(String label) {
        return new FlagValue<>(label, "a text", text -> text.isEmpty() ? Optional.empty() : Optional.of(text));
    }

    private static <E extends Enum<E>> FlagValue<E> constant(String label, String expected, Class<E> type) {
        return new FlagValue<>(
                label,
                expected,
                text -> Stream.of(type.getEnumConstants())
                        .filter(constant -> constant.name().equalsIgnoreCase(text))
                        .findFirst(),
                constant -> constant.name().toLowerCase(Locale.ROOT));
    }

    /** Returns a limit of time; empty for zero. */
    static Optional<Duration> limit(Duration time) {
        return time.isZero() ? Optional.empty() : Optional.of(time);
    }

    private static Optional<Integer> whole(String text, int min, int max) {
        try {
            int number = Integer.parseInt(text.strip());
            return number >= min && number <= max ? Optional.of(number) : Optional.empty();
        } catch (NumberFormatException e) {
            return Optional.empty();
        }
    }

    private static Optional<RateLimitOptions.Resource> rateResource(String text) {
        String[] parts = text.split(":", -1);
        if (parts.length < 2 || parts.length > 3 || parts[0].isEmpty()) {
            return Optional.empty();
        }
        Optional<Integer> count = whole(parts[1], 0, Integer.MAX_VALUE);
        Optional<Integer> device = parts.length == 3 ? whole(parts[2], 0, Integer.MAX_VALUE) : Optional.of(0);
        if (count.isEmpty() || device.isEmpty()) {
            return Optional.empty();
        }
        OptionalInt onDevice = parts.length == 3 ? OptionalInt.of(device.get()) : OptionalInt.empty();
        return Optional.of(new RateLimitOptions.Resource(parts[0], count.get(), onDevice));
    }

    private static Optional<Long> nonNegative(String text) {
        try {
            return Optional.of(Long.parseLong(text.strip())).filter(number -> number >= 0);
        } catch (NumberFormatException e) {
            return Optional.empty();
        }
    }

    /** A setting for one backend, or for all with an empty name. Immutable. */
    record BackendSetting(String backend, String key, String value) {
        private static Optional<BackendSetting> read(String text) {
            int equal = text.indexOf('=');
            int comma = text.substring(0, Math.max(0, equal)).indexOf(',');
            if (comma == 0 || equal <= comma + 1 || equal == text.length() - 1) {
                return Optional.empty();
            }
            String backend = comma < 0 ? "" : text.substring(0, comma);
            return Optional.of(
                    new BackendSetting(backend, text.substring(comma + 1, equal), text.substring(equal + 1)));
        }
    }

    /** A setting of the response cache. Immutable. */
    record CacheSetting(String cache, String key, String value) {
        private static Optional<CacheSetting> read(String text) {
            int comma = text.indexOf(',');
            int equal = text.indexOf('=');
            return comma > 0 && equal > comma + 1 && equal < text.length() - 1
                    ? Optional.of(new CacheSetting(
                            text.substring(0, comma), text.substring(comma + 1, equal), text.substring(equal + 1)))
                    : Optional.empty();
        }
    }

    /** A key and a value. */
    record Setting(String key, String value) {
        private static Optional<Setting> read(String text) {
            int equals = text.indexOf('=');
            return equals < 1
                    ? Optional.empty()
                    : Optional.of(new Setting(text.substring(0, equals), text.substring(equals + 1)));
        }
    }
}
