package dev.nereid.cache.redis;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import java.io.File;
import java.time.Duration;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;

/**
 * Connection settings of Redis. Immutable.
 *
 * @param credentials the user and password for Redis
 * @param timeouts how long connections and commands may take
 * @param tls how connections are encrypted
 */
record RedisSettings(RedisAddress address, RedisCredentials credentials, RedisTimeouts timeouts, RedisTls tls) {
    /**
     * The names of the settings, as on the reference server. The last two configure its connection pool, while this
     * cache has one connection.
     */
    private static final Set<String> NAMES = Set.of(
            "host",
            "port",
            "user",
            "password",
            "db",
            "connect_timeout",
            "socket_timeout",
            "tls_enabled",
            "cert",
            "key",
            "cacert",
            "sni",
            "pool_size",
            "wait_timeout");

    private static final int DEFAULT_PORT = 6379;
    private static final int MAX_PORT = 65_535;
    private static final int DEFAULT_TIMEOUT_MILLIS = 1_000;

    /**
     * Reads the settings of the command line, and credentials from the environment where the command line has none.
     *
     * @param environment the environment variables by name
     */
    static RedisSettings of(Map<String, String> settings, Map<String, String> environment) {
        for (String name : new TreeSet<>(settings.keySet())) {
            if (!NAMES.contains(name)) {
                throw wrong(name + ": unknown setting (expected: one of " + new TreeSet<>(NAMES) + ")");
            }
        }
        String host = settings.getOrDefault("host", "");
        if (host.isEmpty()) {
            throw wrong("host: missing (expected: redis,host=HOST)");
        }
        String certificate = settings.getOrDefault("cert", "");
        String key = settings.getOrDefault("key", "");
        if (certificate.isEmpty() != key.isEmpty()) {
            throw wrong("cert and key: one of them is missing (expected: both or none)");
        }
        return new RedisSettings(
                new RedisAddress(
                        host,
                        number(settings, "port", DEFAULT_PORT, 1, MAX_PORT),
                        number(settings, "db", 0, 0, Integer.MAX_VALUE)),
                RedisCredentials.of(settings, environment),
                new RedisTimeouts(millis(settings, "connect_timeout"), millis(settings, "socket_timeout")),
                new RedisTls(
                        truth(settings, "tls_enabled"),
                        new File(certificate),
                        new File(key),
                        new File(settings.getOrDefault("cacert", "")),
                        settings.getOrDefault("sni", "")));
    }

    /** Never shows the password. */
    @Override
    public String toString() {
        return address.host() + ":" + address.port();
    }

    private static Duration millis(Map<String, String> settings, String name) {
        return Duration.ofMillis(number(settings, name, DEFAULT_TIMEOUT_MILLIS, 1, Integer.MAX_VALUE));
    }

    private static int number(Map<String, String> settings, String name, int ifMissing, int min, int max) {
        String text = settings.get(name);
        if (text == null) {
            return ifMissing;
        }
        try {
            int number = Integer.parseInt(text.strip());
            if (number >= min && number <= max) {
                return number;
            }
        } catch (NumberFormatException e) {
            // reported below
        }
        throw wrong(name + ": '" + text + "' (expected: a whole number from " + min + " to " + max + ")");
    }

    private static boolean truth(Map<String, String> settings, String name) {
        String text = settings.getOrDefault(name, "false");
        return switch (text) {
            case "true", "1" -> true;
            case "false", "0" -> false;
            default -> throw wrong(name + ": '" + text + "' (expected: true or false)");
        };
    }

    private static BackendException wrong(String message) {
        return new BackendException(ErrorCode.INVALID_ARGUMENT, message);
    }
}
