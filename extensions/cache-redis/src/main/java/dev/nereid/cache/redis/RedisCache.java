package dev.nereid.cache.redis;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.cache.CacheEntry;
import dev.nereid.spi.cache.CacheKey;
import dev.nereid.spi.cache.InsertObserver;
import dev.nereid.spi.cache.LookupObserver;
import dev.nereid.spi.cache.ResponseCache;
import io.lettuce.core.ClientOptions;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisException;
import io.lettuce.core.RedisURI;
import io.lettuce.core.SetArgs;
import io.lettuce.core.SocketOptions;
import io.lettuce.core.SslOptions;
import io.lettuce.core.TimeoutOptions;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.resource.ClientResources;
import io.lettuce.core.resource.DefaultClientResources;
import io.lettuce.core.resource.Delay;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import javax.net.ssl.SNIHostName;
import javax.net.ssl.SSLParameters;
import org.jspecify.annotations.Nullable;

/**
 * Response cache in Redis, over one connection that all threads share. Safe for use by any thread: so is the
 * connection.
 *
 * <p>Redis decides how long responses stay and which are evicted ({@code maxmemory-policy}). Without a connection every
 * lookup fails at once, and the cache reconnects in the background; a command timeout is a failure too.
 */
final class RedisCache implements ResponseCache {
    /** The minimum that Lettuce accepts. */
    private static final int THREADS = 2;

    /** Maximum commands in flight; beyond that Redis is too slow to be useful. */
    private static final int MAX_COMMANDS = 4096;

    /** The largest value that Redis takes, in bytes. */
    private static final long MAX_VALUE_BYTES = 512L << 20;

    private static final String CREDENTIALS = "credentials (expected: those of a user of Redis, as user and password in"
            + " --cache-config or as " + RedisCredentials.USER_VARIABLE + " and " + RedisCredentials.PASSWORD_VARIABLE
            + ")";

    private static final Duration MIN_RECONNECT_DELAY = Duration.ofMillis(50);
    private static final Duration MAX_RECONNECT_DELAY = Duration.ofSeconds(2);
    private static final long CLOSE_SECONDS = 2;

    private final ClientResources resources;
    private final RedisClient client;
    private final StatefulRedisConnection<CacheKey, MemorySegment> connection;

    private RedisCache(
            ClientResources resources,
            RedisClient client,
            StatefulRedisConnection<CacheKey, MemorySegment> connection) {
        this.resources = resources;
        this.client = client;
        this.connection = connection;
    }

    /** Connects to Redis. Blocks. */
    static RedisCache connect(RedisSettings settings) {
        ClientResources resources = DefaultClientResources.builder()
                .ioThreadPoolSize(THREADS)
                .computationThreadPoolSize(THREADS)
                .reconnectDelay(Delay.exponential(MIN_RECONNECT_DELAY, MAX_RECONNECT_DELAY, 2, TimeUnit.MILLISECONDS))
                .build();
        RedisClient client = RedisClient.create(resources, uri(settings));
        boolean connected = false;
        try {
            client.setOptions(options(settings));
            RedisCache cache = new RedisCache(resources, client, client.connect(new EntryCodec()));
            connected = true;
            return cache;
        } catch (RedisException | IllegalArgumentException e) {
            throw new BackendException(ErrorCode.UNAVAILABLE, refusal(settings, e), e);
        } finally {
            if (!connected) {
                end(client, resources);
            }
        }
    }

    private static RedisURI uri(RedisSettings settings) {
        RedisAddress address = settings.address();
        RedisCredentials credentials = settings.credentials();
        RedisURI.Builder uri = RedisURI.Builder.redis(address.host(), address.port())
                .withDatabase(address.database())
                .withSsl(settings.tls().enabled())
                .withTimeout(settings.timeouts().connect()); // of the first commands; see options for all others
        if (!credentials.user().isEmpty()) {
            uri.withAuthentication(credentials.user(), credentials.password().toCharArray());
        } else if (!credentials.password().isEmpty()) {
            uri.withPassword(credentials.password().toCharArray());
        }
        return uri.build();
    }

    private static ClientOptions options(RedisSettings settings) {
        return ClientOptions.builder()
                .disconnectedBehavior(ClientOptions.DisconnectedBehavior.REJECT_COMMANDS)
                .requestQueueSize(MAX_COMMANDS)
                .socketOptions(SocketOptions.builder()
                        .connectTimeout(settings.timeouts().connect())
                        .build())
                .timeoutOptions(TimeoutOptions.enabled(settings.timeouts().command()))
                .sslOptions(sslOptions(settings))
                .build();
    }

    private static SslOptions sslOptions(RedisSettings settings) {
        RedisTls tls = settings.tls();
        SslOptions.Builder options = SslOptions.builder()
                .jdkSslProvider()
                .handshakeTimeout(settings.timeouts().connect());
        if (!tls.certificate().getPath().isEmpty()) {
            options.keyManager(tls.certificate(), tls.key(), null);
        }
        if (!tls.authority().getPath().isEmpty()) {
            options.trustManager(tls.authority());
        }
        if (!tls.serverName().isEmpty()) {
            options.sslParameters(() -> {
                SSLParameters parameters = new SSLParameters();
                parameters.setServerNames(List.of(new SNIHostName(tls.serverName())));
                return parameters;
            });
        }
        return options.build();
    }

    @Override
    public void lookup(CacheKey key, LookupObserver observer) {
        connection.async().get(key).whenComplete((content, error) -> {
            if (error != null) {
                observer.failed(describe(error));
            } else if (content == null) {
                observer.missing();
            } else {
                observer.found(new Entry(content));
            }
        });
    }

    /** Sends a copy: Lettuce may read it when the time of the command is over. */
    @Override
    public void insert(CacheKey key, MemorySegment content, InsertObserver observer) {
        if (content.byteSize() > MAX_VALUE_BYTES) {
            observer.refused();
            return;
        }
        MemorySegment copy = MemorySegment.ofArray(content.toArray(ValueLayout.JAVA_BYTE));
        connection.async().set(key, copy, SetArgs.Builder.nx()).whenComplete((ok, error) -> {
            if (error != null) {
                observer.failed(describe(error));
            } else if (ok == null) {
                observer.exists();
            } else {
                observer.stored();
            }
        });
    }

    @Override
    public void close() {
        connection.close();
        end(client, resources);
    }

    private static void end(RedisClient client, ClientResources resources) {
        client.shutdown(0, CLOSE_SECONDS, TimeUnit.SECONDS);
        resources.shutdown(0, CLOSE_SECONDS, TimeUnit.SECONDS).awaitUninterruptibly(CLOSE_SECONDS, TimeUnit.SECONDS);
    }

    /** Returns why Redis cannot be used. An error of Redis comes first, as in the reference. */
    private static String refusal(RedisSettings settings, Throwable error) {
        String place = "Redis at " + settings + " cannot be used: ";
        for (Throwable cause = error; cause != null; cause = cause.getCause()) {
            String text = String.valueOf(cause.getMessage());
            if (text.startsWith("NOAUTH")) { // Redis words it differently for the first command of a connection
                return "NOAUTH Authentication required.; " + place + CREDENTIALS;
            } else if (text.startsWith("WRONGPASS")) {
                return text + "; " + place + CREDENTIALS;
            }
        }
        return place + describe(error);
    }

    private static String describe(Throwable error) {
        @Nullable Throwable cause = error.getCause();
        return error.getMessage() + (cause == null ? "" : ": " + cause.getMessage());
    }

    /** A response received from Redis. Immutable. */
    private record Entry(MemorySegment content) implements CacheEntry {
        /** The garbage collector frees it. */
        @Override
        public void close() {}
    }
}
