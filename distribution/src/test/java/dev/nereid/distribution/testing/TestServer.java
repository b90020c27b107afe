package dev.nereid.distribution.testing;

import dev.nereid.api.InferenceServer;
import dev.nereid.distribution.process.EventLoops;
import dev.nereid.grpc.GrpcFrontend;
import dev.nereid.grpc.GrpcOptions;
import dev.nereid.http.HttpFrontend;
import dev.nereid.http.HttpOptions;
import dev.nereid.server.NereidServer;
import dev.nereid.server.options.ServerOptions;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import java.io.IOException;
import java.util.function.Consumer;
import java.util.function.UnaryOperator;

/**
 * A whole server in the test's process. It is assembled as by the command {@code serve}: packed plugins, and both front
 * ends on the same event loops, on free ports. Confined to the test's thread, except the objects that it returns.
 */
public final class TestServer implements AutoCloseable {
    /** How much JSON a request may hold: little, so that tests need not send much to exceed it. */
    public static final long MAX_JSON_BYTES = 8 << 20;

    private final NereidServer server;
    private final EventLoops loops;
    private final HttpFrontend http;
    private final GrpcFrontend grpc;

    private TestServer(NereidServer server, EventLoops loops, HttpFrontend http, GrpcFrontend grpc) {
        this.server = server;
        this.loops = loops;
        this.http = http;
        this.grpc = grpc;
    }

    /** Returns the options of a server with the plugins of the build and the models of a repository. */
    public static ServerOptions of(Repository models) {
        return ServerOptions.of(models.directory()).withPlugins(TestPaths.plugins());
    }

    /** Opens both ports of a server, which belongs to the result from now on. */
    public static TestServer open(NereidServer server) throws IOException {
        return open(server, port -> port);
    }

    /** Opens both ports of a server, with an interceptor between them and the server. */
    public static TestServer open(NereidServer server, UnaryOperator<InferenceServer> between) throws IOException {
        return open(server, between, _ -> {});
    }

    /** Opens both ports of a server, the one for gRPC with options of its own. */
    public static TestServer open(
            NereidServer server, UnaryOperator<InferenceServer> between, Consumer<GrpcOptions.Builder> change)
            throws IOException {
        EventLoops loops = EventLoops.start(1);
        InferenceServer port = between.apply(server);
        HttpFrontend http = HttpFrontend.start(loops.vertx(), port, HttpOptions.of(options -> {
            options.port = 0;
            options.eventLoops = loops.count();
            options.maxJsonBytes = MAX_JSON_BYTES;
        }));
        GrpcOptions options = GrpcOptions.of(builder -> {
            builder.port = 0;
            change.accept(builder);
        });
        GrpcFrontend grpc = GrpcFrontend.start(port, options, loops.groups());
        return new TestServer(server, loops, http, grpc);
    }

    public NereidServer server() {
        return server;
    }

    public int httpPort() {
        return http.port();
    }

    public int grpcPort() {
        return grpc.port();
    }

    /** Connects over HTTP. */
    public HttpConnection http() throws IOException {
        return HttpConnection.to(http.port());
    }

    /** Connects over gRPC; the channel belongs to the caller. */
    public ManagedChannel grpc() {
        return Grpc.newChannelBuilder("127.0.0.1:" + grpc.port(), InsecureChannelCredentials.create())
                .maxInboundMessageSize(Integer.MAX_VALUE)
                .build();
    }

    @Override
    public void close() {
        http.close();
        grpc.close();
        server.close();
        loops.close();
    }
}
