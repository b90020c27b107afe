package dev.nereid.grpc;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.InferenceException;
import dev.nereid.api.InferenceServer;
import dev.nereid.spi.ErrorCode;
import inference.GRPCInferenceServiceGrpc;
import io.grpc.BindableService;
import io.grpc.Metadata;
import io.grpc.Server;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.ServerInterceptor;
import io.grpc.health.v1.HealthGrpc;
import io.grpc.netty.NettyServerBuilder;
import io.grpc.protobuf.services.ProtoReflectionService;
import io.grpc.protobuf.services.ProtoReflectionServiceV1;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.Set;
import java.util.concurrent.TimeUnit;

/**
 * Serves an {@link InferenceServer} over gRPC. Safe for use by any thread.
 *
 * <p>Everything runs on the event loops that the caller gives, which it goes on to own; nothing blocks them.
 */
public final class GrpcFrontend implements AutoCloseable {
    private static final long LAST_CALLS_MILLIS = 1_000;

    private final Server transport;
    private final GrpcOptions options;
    private final Stopping stopping;

    private GrpcFrontend(Server transport, GrpcOptions options, Stopping stopping) {
        this.transport = transport;
        this.options = options;
        this.stopping = stopping;
    }

    /**
     * Starts to listen.
     *
     * @param server what to serve; goes on to belong to the caller, and must outlive the front end
     * @param options how to listen
     * @param groups the event loops to run on; go on to belong to the caller, and must outlive the front end
     * @return the front end, to be closed by the caller
     * @throws IOException if the address cannot be listened on
     */
    public static GrpcFrontend start(InferenceServer server, GrpcOptions options, EventLoopGroups groups)
            throws IOException {
        requireNonNull(server, "server");
        requireNonNull(options, "options");
        requireNonNull(groups, "groups");
        Stopping stopping = new Stopping();
        ModelInferMethod modelInfer = new ModelInferMethod(
                server, new CallAssembler(server.memory(), options.maxInboundMessageBytes()), System::nanoTime);
        Server transport = transport(options, groups)
                .intercept(stopping)
                .addService(InferenceService.of(server, modelInfer.definition()))
                .addService(HealthService.of(
                        server, Set.of(GRPCInferenceServiceGrpc.SERVICE_NAME, HealthGrpc.SERVICE_NAME)))
                .addService(ProtoReflectionServiceV1.newInstance())
                .addService(earlyReflection())
                .build()
                .start();
        return new GrpcFrontend(transport, options, stopping);
    }

    /** The service that went before, which many clients still ask for. */
    @SuppressWarnings("deprecation")
    private static BindableService earlyReflection() {
        return ProtoReflectionService.newInstance();
    }

    private static NettyServerBuilder transport(GrpcOptions options, EventLoopGroups groups) {
        GrpcOptions.KeepAlive keepAlive = options.keepAlive();
        return NettyServerBuilder.forAddress(new InetSocketAddress(options.address(), options.port()))
                .bossEventLoopGroup(groups.acceptors())
                .workerEventLoopGroup(groups.workers())
                .channelFactory(groups.channels())
                .directExecutor()
                .maxInboundMessageSize(options.maxInboundMessageBytes())
                .flowControlWindow(options.flowControlWindowBytes())
                .keepAliveTime(keepAlive.time().toNanos(), TimeUnit.NANOSECONDS)
                .keepAliveTimeout(keepAlive.timeout().toNanos(), TimeUnit.NANOSECONDS)
                .permitKeepAliveWithoutCalls(keepAlive.withoutCalls())
                .permitKeepAliveTime(keepAlive.minPingInterval().toNanos(), TimeUnit.NANOSECONDS);
    }

    /**
     * Returns where the front end listens.
     *
     * @return the address
     */
    public String address() {
        return options.address();
    }

    /**
     * Returns where the front end listens.
     *
     * @return the port, never 0
     */
    public int port() {
        return transport.getPort();
    }

    /**
     * Refuses new calls, waits for those in progress as long as the options allow, and ends what is left. Blocks; not
     * to be called on an event loop. Later calls do nothing. An interrupt ends the wait, and stays set.
     */
    @Override
    public void close() {
        stopping.begin();
        transport.shutdown();
        try {
            if (!transport.awaitTermination(options.closeTimeout().toNanos(), TimeUnit.NANOSECONDS)) {
                transport.shutdownNow();
                transport.awaitTermination(LAST_CALLS_MILLIS, TimeUnit.MILLISECONDS);
            }
        } catch (InterruptedException _) {
            transport.shutdownNow();
            Thread.currentThread().interrupt();
        }
    }

    /** Refuses calls that come on open connections while the front end closes. Safe for use by any thread. */
    private static final class Stopping implements ServerInterceptor {
        private volatile boolean begun;

        void begin() {
            begun = true;
        }

        @Override
        public <Q, R> ServerCall.Listener<Q> interceptCall(
                ServerCall<Q, R> call, Metadata headers, ServerCallHandler<Q, R> next) {
            if (!begun) {
                return next.startCall(call, headers);
            }
            GrpcErrors.fail(
                    call,
                    new InferenceException(
                            ErrorCode.UNAVAILABLE,
                            "GRPC server is shutting down and has stopped accepting new requests."));
            return new ServerCall.Listener<>() {};
        }
    }
}
