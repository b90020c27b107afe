package dev.nereid.distribution.testing;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.server.NereidServer;
import dev.nereid.server.options.ServerOptions;
import io.grpc.ManagedChannel;
import java.io.IOException;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/**
 * A {@link TestServer} and a client of each protocol, for a test, or for all tests of a class if its field is static.
 * It starts before the first method of the test or class, after the temporary directories exist. At the end it checks
 * that no tensor memory is in use. Confined to the test's thread, except {@link #channel}, {@link #http} and the
 * objects that it returns.
 *
 * {@snippet :
 * @RegisterExtension
 * private final ServerExtension server = new ServerExtension(() -> TestServer.of(models));
 * }
 */
public final class ServerExtension
        implements BeforeAllCallback, BeforeEachCallback, AfterEachCallback, AfterAllCallback {
    private static final long TIMEOUT_SECONDS = 60;

    /** Creates the options of a server. */
    public interface Options {
        ServerOptions create() throws Exception;
    }

    private final Options options;
    private boolean isOfClass;
    private @Nullable TestServer server;
    private @Nullable ManagedChannel channel;
    private @Nullable HttpConnection connection;

    /** Takes options, which are created when the server starts: they may skip the test. */
    public ServerExtension(Options options) {
        this.options = options;
    }

    public NereidServer server() {
        return opened().server();
    }

    public int httpPort() {
        return opened().httpPort();
    }

    public int grpcPort() {
        return opened().grpcPort();
    }

    /** Connects over HTTP; the connection belongs to the caller. */
    public HttpConnection http() throws IOException {
        return opened().http();
    }

    /** Connects over gRPC; the channel belongs to the caller. */
    public ManagedChannel grpc() {
        return opened().grpc();
    }

    /** Returns a connection over HTTP that is closed with the server. */
    public HttpConnection connection() throws IOException {
        if (connection == null) {
            connection = http();
        }
        return connection;
    }

    /** Returns a channel of gRPC that is closed with the server. */
    public ManagedChannel channel() {
        assertThat(channel).as("channel").isNotNull();
        return channel;
    }

    @Override
    public void beforeAll(ExtensionContext context) throws Exception {
        isOfClass = true;
        start();
    }

    @Override
    public void beforeEach(ExtensionContext context) throws Exception {
        if (!isOfClass) {
            start();
        }
    }

    @Override
    public void afterEach(ExtensionContext context) throws Exception {
        if (!isOfClass) {
            stop();
        }
    }

    @Override
    public void afterAll(ExtensionContext context) throws Exception {
        stop();
    }

    private TestServer opened() {
        assertThat(server).as("server").isNotNull();
        return server;
    }

    private void start() throws Exception {
        server = TestServer.open(NereidServer.start(options.create()));
        channel = server.grpc();
    }

    private void stop() throws IOException, InterruptedException {
        if (server == null) {
            return;
        }
        if (connection != null) {
            connection.close();
        }
        assertThat(channel().shutdownNow().awaitTermination(TIMEOUT_SECONDS, TimeUnit.SECONDS))
                .isTrue();
        server.close();
        assertThat(server.server().memory().bytesInUse()).isZero();
    }
}
