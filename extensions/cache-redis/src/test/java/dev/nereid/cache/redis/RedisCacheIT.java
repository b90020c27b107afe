package dev.nereid.cache.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.cache.CacheContext;
import dev.nereid.spi.cache.CacheEntry;
import dev.nereid.spi.cache.CacheKey;
import dev.nereid.spi.cache.InsertObserver;
import dev.nereid.spi.cache.LookupObserver;
import dev.nereid.spi.cache.ResponseCache;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The cache against a real Redis, as packaged by Debian. */
@Timeout(120)
final class RedisCacheIT {
    private static final CacheKey KEY = new CacheKey(0x0123456789abcdefL, -1);

    @TempDir
    private Path directory;

    @BeforeAll
    static void needsRedis() {
        RedisServer.assumeInstalled("redis-server", "--version");
    }

    @Test
    void keepsResponsesForEveryServer() throws Exception {
        try (RedisServer redis = RedisServer.start(RedisServer.freePort(), directory);
                ResponseCache one = open(redis, Map.of());
                ResponseCache other = open(redis, Map.of("db", "0", "pool_size", "5"));
                ResponseCache elsewhere = open(redis, Map.of("db", "1"))) {
            assertThat(lookup(one)).isEqualTo("missing");
            assertThat(insert(one, 7)).isEqualTo("stored");
            assertThat(insert(other, 8)).isEqualTo("exists");
            assertThat(lookup(other)).isEqualTo("found 7");
            assertThat(lookup(elsewhere)).isEqualTo("missing");
        }
    }

    @Test
    void servesManyLookupsAtOnce() throws Exception {
        try (RedisServer redis = RedisServer.start(RedisServer.freePort(), directory);
                ResponseCache cache = open(redis, Map.of())) {
            insert(cache, 3);
            List<RecordingObserver> outcome = new ArrayList<>();
            for (int i = 0; i < 1000; i++) {
                RecordingObserver each = new RecordingObserver();
                outcome.add(each);
                cache.lookup(KEY, each);
            }

            for (RecordingObserver each : outcome) {
                assertThat(each.await()).isEqualTo("found 3");
            }
        }
    }

    @Test
    void namesItselfWithAPassword() throws Exception {
        try (RedisServer redis =
                RedisServer.start(RedisServer.freePort(), directory, "--requirepass", "open, sesame")) {
            try (ResponseCache cache = open(redis, Map.of("password", "open, sesame"));
                    ResponseCache named = open(redis, Map.of("user", "default", "password", "open, sesame"))) {
                assertThat(insert(cache, 1)).isEqualTo("stored");
                assertThat(lookup(named)).isEqualTo("found 1");
            }
            assertThatThrownBy(() -> open(redis, Map.of("password", "wrong")))
                    .isInstanceOf(BackendException.class)
                    .hasMessageStartingWith("WRONGPASS ")
                    .hasMessageContaining("Redis at 127.0.0.1:" + redis.port() + " cannot be used: ")
                    .hasMessageNotContaining("wrong (");
        }
    }

    @Test
    void readsCredentialsFromTheEnvironment() throws Exception {
        String user = "TRITONCACHE_REDIS_USERNAME";
        String password = "TRITONCACHE_REDIS_PASSWORD";
        try (RedisServer redis = RedisServer.start(
                RedisServer.freePort(),
                directory,
                "--requirepass",
                "a'b é",
                "--user",
                "writer",
                "on",
                ">s3cret",
                "~*",
                "&*",
                "+@all")) {
            for (Map<String, String> environment : List.of(
                    Map.of(password, "a'b é"),
                    Map.of(password, "a'b é", user, ""),
                    Map.of(password, "a'b é", user, "default"),
                    Map.of(password, "s3cret", user, "writer"))) {
                try (ResponseCache cache = open(settings(redis, Map.of()), environment)) {
                    assertThat(lookup(cache)).isEqualTo("missing");
                }
            }
            try (ResponseCache cache = open(
                    settings(redis, Map.of("password", "a'b é", "user", "default")),
                    Map.of(password, "s3cret", user, "nobody"))) {
                assertThat(lookup(cache)).isEqualTo("missing");
            }
            assertThatThrownBy(() -> open(settings(redis, Map.of()), Map.of(password, "wr0ng")))
                    .hasMessageStartingWith("WRONGPASS ")
                    .hasMessageNotContaining("wr0ng");
        }
    }

    @Test
    void saysFirstThatRedisWantsCredentials() throws Exception {
        try (RedisServer redis = RedisServer.start(RedisServer.freePort(), directory, "--requirepass", "x")) {
            assertThatThrownBy(() -> open(redis, Map.of()))
                    .isInstanceOf(BackendException.class)
                    .hasMessage("NOAUTH Authentication required.; Redis at 127.0.0.1:" + redis.port()
                            + " cannot be used: credentials (expected: those of a user of Redis, as user and password"
                            + " in --cache-config or as TRITONCACHE_REDIS_USERNAME and TRITONCACHE_REDIS_PASSWORD)");
        }
    }

    @Test
    void encryptsTheConnection() throws Exception {
        RedisServer.assumeInstalled("openssl", "version");
        makeCertificate();
        String port = String.valueOf(RedisServer.freePort());
        try (RedisServer redis = RedisServer.start(
                0,
                directory,
                "--tls-port",
                port,
                "--tls-cert-file",
                "cert.pem",
                "--tls-key-file",
                "key.pem",
                "--tls-ca-cert-file",
                "cert.pem")) {
            String certificate = directory.resolve("cert.pem").toString();
            String key = directory.resolve("key.pem").toString();
            Map<String, String> encrypted = new HashMap<>(
                    Map.of("port", port, "host", "localhost", "tls_enabled", "true", "cacert", certificate));
            assertThatThrownBy(() -> open(redis, Map.of("port", port, "tls_enabled", "true")))
                    .isInstanceOf(BackendException.class);
            encrypted.putAll(Map.of("cert", certificate, "key", key, "sni", "localhost"));
            try (ResponseCache cache = open(redis, encrypted)) {
                assertThat(insert(cache, 9)).isEqualTo("stored");
                assertThat(lookup(cache)).isEqualTo("found 9");
            }
        }
    }

    /** Never blocks, and reconnects by itself. */
    @Test
    void failsWhileRedisIsGone() throws Exception {
        int port = RedisServer.freePort();
        RedisServer redis = RedisServer.start(port, directory);
        try (ResponseCache cache = open(redis, Map.of())) {
            redis.close();
            String outcome = lookup(cache);
            while (outcome.equals("missing")) { // the connection breaks a moment later
                outcome = lookup(cache);
            }
            assertThat(outcome).startsWith("failed ");
            assertThat(insert(cache, 1)).startsWith("failed ");

            try (RedisServer again = RedisServer.start(port, directory)) {
                while (lookup(cache).startsWith("failed ")) {
                    Thread.onSpinWait();
                }
                assertThat(again.port()).isEqualTo(port);
                assertThat(insert(cache, 2)).isEqualTo("stored");
            }
        }
    }

    @Test
    void failsWhenRedisHangs() throws Exception {
        try (RedisServer redis = RedisServer.start(RedisServer.freePort(), directory);
                ResponseCache cache = open(redis, Map.of("socket_timeout", "200"))) {
            redis.signal("STOP");

            assertThat(lookup(cache)).startsWith("failed ").contains("200 millisecond");
            assertThat(insert(cache, 1)).startsWith("failed ");
            redis.signal("CONT");
        }
    }

    /** Also requests that never get a response: the end of the server waits for them. */
    @Test
    void failsPendingLookupsWhenItIsClosed() throws Exception {
        try (RedisServer redis = RedisServer.start(RedisServer.freePort(), directory)) {
            ResponseCache cache = open(redis, Map.of("socket_timeout", "60000"));
            redis.signal("STOP");
            RecordingObserver outcome = new RecordingObserver();
            cache.lookup(KEY, outcome);
            cache.close();

            assertThat(outcome.await()).startsWith("failed ");
            redis.signal("CONT");
        }
    }

    @Test
    void doesNotStartWithoutRedis() throws IOException {
        int port = RedisServer.freePort();

        assertThatThrownBy(() -> open(Map.of("host", "127.0.0.1", "port", String.valueOf(port))))
                .isInstanceOf(BackendException.class)
                .hasMessageStartingWith("Redis at 127.0.0.1:" + port + " cannot be used: ");
    }

    private void makeCertificate() throws IOException, InterruptedException {
        int status = new ProcessBuilder(
                        ("openssl req -x509 -newkey rsa:2048 -nodes -days 2 -keyout key.pem -out cert.pem -subj"
                                        + " /CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1")
                                .split(" "))
                .directory(directory.toFile())
                .redirectErrorStream(true)
                .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                .start()
                .waitFor();
        assertThat(status).isZero();
    }

    private static ResponseCache open(RedisServer redis, Map<String, String> more) {
        return open(settings(redis, more));
    }

    private static Map<String, String> settings(RedisServer redis, Map<String, String> more) {
        Map<String, String> settings = new HashMap<>(Map.of("host", "127.0.0.1", "port", String.valueOf(redis.port())));
        settings.putAll(more);
        return settings;
    }

    private static ResponseCache open(Map<String, String> settings) {
        return open(settings, Map.of());
    }

    private static ResponseCache open(Map<String, String> settings, Map<String, String> environment) {
        return new RedisCacheProvider().create(new CacheContext() {
            @Override
            public Map<String, String> settings() {
                return settings;
            }

            @Override
            public Map<String, String> environment() {
                return environment;
            }

            @Override
            public System.Logger logger() {
                return System.getLogger("redis");
            }
        });
    }

    private static String lookup(ResponseCache cache) throws Exception {
        RecordingObserver outcome = new RecordingObserver();
        cache.lookup(KEY, outcome);
        return outcome.await();
    }

    private static String insert(ResponseCache cache, int value) throws Exception {
        RecordingObserver outcome = new RecordingObserver();
        try (Arena arena = Arena.ofShared()) {
            MemorySegment content = arena.allocate(100).fill((byte) value);
            cache.insert(KEY, content.asReadOnly(), outcome);
            return outcome.await();
        }
    }

    /** Records the notifications of an observer as text. */
    private static final class RecordingObserver implements LookupObserver, InsertObserver {
        private final CompletableFuture<String> text = new CompletableFuture<>();

        String await() throws Exception {
            return text.get(30, TimeUnit.SECONDS);
        }

        @Override
        public void found(CacheEntry entry) {
            MemorySegment content = entry.content();
            boolean right = content.isNative() && content.isReadOnly() && content.address() % 64 == 0;
            text.complete("found " + (right ? content.get(ValueLayout.JAVA_BYTE, content.byteSize() - 1) : "wrong"));
            entry.close();
        }

        @Override
        public void missing() {
            text.complete("missing");
        }

        @Override
        public void stored() {
            text.complete("stored");
        }

        @Override
        public void exists() {
            text.complete("exists");
        }

        @Override
        public void refused() {
            text.complete("refused");
        }

        @Override
        public void failed(String reason) {
            text.complete("failed " + reason);
        }
    }
}
