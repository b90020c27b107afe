package dev.nereid.grpc;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.InferenceServer;
import dev.nereid.api.Refusals;
import dev.nereid.grpc.connection.ConnectionAcceptor;
import dev.nereid.grpc.connection.ConnectionLimits;
import dev.nereid.grpc.connection.ConnectionRegistry;
import dev.nereid.grpc.connection.OpenCallLimit;
import dev.nereid.grpc.connection.ShutdownInterceptor;
import dev.nereid.grpc.connection.StalledConnections;
import dev.nereid.grpc.connection.TransportMemory;
import dev.nereid.grpc.service.BadRequestErrors;
import dev.nereid.grpc.service.BoundedService;
import dev.nereid.grpc.service.DelayedResponses;
import dev.nereid.grpc.service.HealthService;
import dev.nereid.grpc.service.InferCallDependencies;
import dev.nereid.grpc.service.InferenceService;
import dev.nereid.grpc.service.ModelInferMethod;
import dev.nereid.grpc.service.RestrictedMethods;
import dev.nereid.grpc.service.UnknownMethods;
import dev.nereid.grpc.stream.ModelStreamInferMethod;
import dev.nereid.grpc.stream.StreamContext;
import dev.nereid.grpc.stream.StreamLimits;
import dev.nereid.grpc.wire.InferRequestAssembler;
import dev.nereid.grpc.wire.MessageDecompressor;
import dev.nereid.grpc.wire.ResponseCompressor;
import inference.GRPCInferenceServiceGrpc;
import io.grpc.BindableService;
import io.grpc.Server;
import io.grpc.ServerMethodDefinition;
import io.grpc.health.v1.HealthGrpc;
import io.grpc.netty.NettyServerBuilder;
import io.grpc.protobuf.services.ProtoReflectionService;
import io.grpc.protobuf.services.ProtoReflectionServiceV1;
import io.netty.channel.AdaptiveRecvByteBufAllocator;
import io.netty.channel.ChannelOption;
import io.netty.channel.EventLoop;
import io.netty.channel.ServerChannel;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.TimeUnit;

/**
 * Serves an {@link InferenceServer} over gRPC. Safe for use by any thread.
 *
 * <p>Everything runs on the event loops of the caller, who goes on to own them; nothing blocks them.
 */
public final class GrpcFrontend implements AutoCloseable {
    /**
     * How often the transport reads of a connection, 64 KiB at most each time, before it turns to the others of the event
     * loop. With Netty's 16, 64 clients that send large messages hold up all others for a second.
     */
    private static final int MAX_READS_AT_ONCE = 2;

    private static final long FORCED_SHUTDOWN_MILLIS = 1_000;

    /** The time during which calls may still begin on connections after GOAWAY was sent. */
    private static final long GOAWAY_MILLIS = 1_000;

    /** The bytes of waiting responses at which reading of a stream pauses. */
    private static final long MAX_WAITING_BYTES = 16L << 20;

    /** The bytes that decoupled models may be ahead of the client of a stream. */
    private static final long MAX_BYTES_AHEAD = 64L << 20;

    /**
     * The maximum number of calls in progress on a connection; clients delay further ones. Responses that a client does
     * not read wait in the memory of the transport, which nothing else bounds.
     */
    private static final int MAX_CALLS_PER_CONNECTION = 1024;

    /** Stands for no timeout: longer than a connection lives. */
    private static final Duration NO_TIMEOUT = Duration.ofDays(365);

    /** Resets that the transport accepts, even for closed streams; {@link ConnectionLimits} limits them further. */
    private static final int MAX_RESETS = 20_000;

    private static final int RESET_WINDOW_SECONDS = 10;

    /** The divisor of the call limit that gives the limit of unread responses. */
    private static final int UNREAD_PART = 4;

    private final Server transport;
    private final GrpcOptions options;
    private final ShutdownInterceptor shutdown;
    private final HealthService health;
    private final Optional<ReloadingSslContext> tls;

    private GrpcFrontend(
            Server transport,
            GrpcOptions options,
            ShutdownInterceptor shutdown,
            HealthService health,
            Optional<ReloadingSslContext> tls) {
        this.transport = transport;
        this.options = options;
        this.shutdown = shutdown;
        this.health = health;
        this.tls = tls;
    }

    /**
     * Starts to listen. The caller owns the server and the event loops, which must outlive the front end, and closes
     * the front end.
     *
     * @throws IOException if the address cannot be listened on; {@link dev.nereid.api.tls.TlsFilesException} if a TLS
     *     file cannot be used
     * @throws IllegalStateException if the program has other versions of libraries, such as a framework's
     */
    public static GrpcFrontend start(InferenceServer server, GrpcOptions options, EventLoopGroups groups)
            throws IOException {
        requireNonNull(server, "server");
        requireNonNull(options, "options");
        requireNonNull(groups, "groups");
        try {
            return open(server, options, groups);
        } catch (LinkageError e) {
            throw new IllegalStateException(
                    "gRPC front end: Netty and gRPC of other versions (expected: Netty 4.2 and gRPC 1.81, or later; import"
                            + " netty-bom and nereid-bom before other BOMs): " + e,
                    e);
        }
    }

    private static GrpcFrontend open(InferenceServer server, GrpcOptions options, EventLoopGroups groups)
            throws IOException {
        TransportLogFilter.install();
        EventLoop timer = groups.workers().next();
        ShutdownInterceptor shutdown = new ShutdownInterceptor(server.refusals());
        HealthService health = new HealthService(
                server, Set.of(GRPCInferenceServiceGrpc.SERVICE_NAME, HealthGrpc.SERVICE_NAME), timer);
        TransportMemory transport =
                new TransportMemory(server.memory(), options.limits().transportBytes());
        ConnectionRegistry guard = guard(options.limits(), transport, groups, server.refusals());
        NettyServerBuilder builder = transport(options, groups, guard, server.refusals())
                // The interceptor that is added last runs first.
                .intercept(new RestrictedMethods(options.policy().access(), server.refusals()))
                .intercept(shutdown)
                .addService(InferenceService.of(
                        server, inferenceMethods(server, options, groups, shutdown, transport), groups.longTasks()))
                .addService(health.definition())
                .addService(
                        BoundedService.of(ProtoReflectionServiceV1.newInstance().bindService()))
                .addService(BoundedService.of(reflectionV1Alpha().bindService()));
        if (server.refusals().changesCodes()) {
            builder.intercept(new BadRequestErrors());
        }
        if (options.messages().controlDelay().isPositive()) {
            builder.intercept(new DelayedResponses(options.messages().controlDelay(), timer));
        }
        Optional<ReloadingSslContext> tls = Optional.empty();
        if (options.connections().tls().isPresent()) {
            tls = Optional.of(ReloadingSslContext.of(options.connections().tls().get(), timer));
            builder.sslContext(tls.get().context());
        }
        try {
            return new GrpcFrontend(builder.build().start(), options, shutdown, health, tls);
        } catch (IOException | RuntimeException e) {
            tls.ifPresent(ReloadingSslContext::close);
            throw e;
        }
    }

    private static ConnectionRegistry guard(
            GrpcOptions.Limits limits, TransportMemory transport, EventLoopGroups groups, Refusals refusals) {
        StalledConnections unread = new StalledConnections(
                new StalledConnections.Limits(
                        Math.max(1, limits.openCalls() / UNREAD_PART),
                        limits.unreadBytes(),
                        limits.responseStall().map(Duration::toNanos).orElse(Long.MAX_VALUE)),
                System::nanoTime);
        return new ConnectionRegistry(
                transport,
                groups.longTasks(),
                limits.openConnections(),
                new OpenCallLimit(limits.openCalls()),
                unread,
                refusals,
                System::nanoTime);
    }

    private static List<ServerMethodDefinition<?, ?>> inferenceMethods(
            InferenceServer server,
            GrpcOptions options,
            EventLoopGroups groups,
            ShutdownInterceptor shutdown,
            TransportMemory transport) {
        GrpcOptions.Messages messages = options.messages();
        InferCallDependencies dependencies = new InferCallDependencies(
                new InferRequestAssembler(server.memory(), server.sharedMemory(), messages.maxInboundBytes()),
                options.policy().forwardedHeaders(),
                new ResponseCompressor(messages.compression().level()),
                transport,
                System::nanoTime);
        return List.of(
                new ModelInferMethod(server, dependencies).definition(),
                new ModelStreamInferMethod(new StreamContext(
                                server,
                                dependencies,
                                new StreamLimits(messages.maxWaitingResponses(), MAX_WAITING_BYTES, MAX_BYTES_AHEAD),
                                groups.workers(),
                                shutdown))
                        .definition());
    }

    /** Returns the predecessor of the reflection service, which many clients still use. */
    @SuppressWarnings("deprecation")
    private static BindableService reflectionV1Alpha() {
        return ProtoReflectionService.newInstance();
    }

    private static NettyServerBuilder transport(
            GrpcOptions options, EventLoopGroups groups, ConnectionRegistry guard, Refusals refusals) {
        GrpcOptions.Limits limits = options.limits();
        GrpcOptions.Connections connections = options.connections();
        GrpcOptions.KeepAlive keepAlive = connections.keepAlive();
        NettyServerBuilder builder = NettyServerBuilder.forAddress(
                        new InetSocketAddress(options.address(), options.port()))
                .bossEventLoopGroup(groups.acceptors())
                .workerEventLoopGroup(groups.workers())
                .channelFactory(() -> {
                    ServerChannel channel = groups.channels().newChannel();
                    channel.pipeline().addLast(new ConnectionAcceptor(guard));
                    return channel;
                })
                .withChildOption(
                        ChannelOption.RECVBUF_ALLOCATOR,
                        new AdaptiveRecvByteBufAllocator().maxMessagesPerRead(MAX_READS_AT_ONCE))
                .addTransportFilter(guard)
                .fallbackHandlerRegistry(new UnknownMethods(refusals))
                .maxRstFramesPerWindow(MAX_RESETS, RESET_WINDOW_SECONDS)
                .handshakeTimeout(limits.handshakeTimeout().orElse(NO_TIMEOUT).toMillis(), TimeUnit.MILLISECONDS)
                .directExecutor()
                .maxConcurrentCallsPerConnection(MAX_CALLS_PER_CONNECTION)
                .decompressorRegistry(
                        MessageDecompressor.registry(options.messages().maxInboundBytes()))
                .compressorRegistry(
                        new ResponseCompressor(options.messages().compression().level()).registry())
                .maxInboundMessageSize(options.messages().maxInboundBytes())
                .flowControlWindow(options.messages().flowControlWindowBytes())
                .keepAliveTime(keepAlive.time().toNanos(), TimeUnit.NANOSECONDS)
                .keepAliveTimeout(keepAlive.timeout().toNanos(), TimeUnit.NANOSECONDS)
                .permitKeepAliveWithoutCalls(keepAlive.withoutCalls())
                .permitKeepAliveTime(keepAlive.minPingInterval().toNanos(), TimeUnit.NANOSECONDS);
        limits.maxIdle().ifPresent(idle -> builder.maxConnectionIdle(idle.toNanos(), TimeUnit.NANOSECONDS));
        connections.maxAge().ifPresent(age -> builder.maxConnectionAge(age.toNanos(), TimeUnit.NANOSECONDS));
        connections
                .maxAgeGrace()
                .ifPresent(grace -> builder.maxConnectionAgeGrace(grace.toNanos(), TimeUnit.NANOSECONDS));
        return builder;
    }

    /** Returns the address that the front end listens on. */
    public String address() {
        return options.address();
    }

    /** Returns the port that the front end listens on, never 0. */
    public int port() {
        return transport.getPort();
    }

    /**
     * Sends GOAWAY to clients, waits for calls in progress, and cancels the rest. Serves the calls that clients begin
     * before they receive GOAWAY, and refuses later requests of streams. Waits as long as the options allow. Blocks;
     * not to be called on an event loop. Repeated closing does nothing. An interrupt ends the wait, and stays set.
     */
    @Override
    public void close() {
        health.stop();
        tls.ifPresent(ReloadingSslContext::close);
        transport.shutdown();
        long nanos = options.closeTimeout().toNanos();
        long first = Math.min(nanos, TimeUnit.MILLISECONDS.toNanos(GOAWAY_MILLIS));
        try {
            boolean terminated = transport.awaitTermination(first, TimeUnit.NANOSECONDS);
            shutdown.start();
            if (!terminated && !transport.awaitTermination(nanos - first, TimeUnit.NANOSECONDS)) {
                transport.shutdownNow();
                transport.awaitTermination(FORCED_SHUTDOWN_MILLIS, TimeUnit.MILLISECONDS);
            }
        } catch (InterruptedException _) {
            transport.shutdownNow();
            Thread.currentThread().interrupt();
        }
    }
}
