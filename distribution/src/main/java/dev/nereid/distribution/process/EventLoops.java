package dev.nereid.distribution.process;

import dev.nereid.grpc.EventLoopGroups;
import dev.nereid.server.NereidServer;
import io.netty.channel.EventLoopGroup;
import io.vertx.core.Context;
import io.vertx.core.ThreadingModel;
import io.vertx.core.Vertx;
import io.vertx.core.VertxOptions;
import io.vertx.core.file.FileSystemOptions;
import io.vertx.core.internal.VertxInternal;
import io.vertx.core.spi.transport.Transport;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The event loops of the process: some that HTTP and gRPC share, and one for metrics and probes. Owned by {@code
 * RunningServer}; safe for use by any thread.
 */
public final class EventLoops implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(EventLoops.class);

    /** Maximum time for event loops to end after all ports are closed. */
    private static final long CLOSE_SECONDS = 5;

    private static final long WORKER_IDLE_SECONDS = 60;

    /** The share of the loop for metrics that connections have, in percent; the default of Netty. */
    private static final int IO_RATIO = 50;

    private final Vertx vertx;
    private final int count;

    /** One event loop; its thread starts when it is used. */
    private final EventLoopGroup metrics;

    /** Run gRPC work that would block an event loop; idle threads end. */
    private final ThreadPoolExecutor grpcWorkers;

    private EventLoops(VertxInternal vertx, int count) {
        this.vertx = vertx;
        this.metrics = vertx.transport()
                .eventLoopGroup(
                        Transport.IO_EVENT_LOOP_GROUP,
                        1,
                        Thread.ofPlatform()
                                .name("metrics-eventloop-thread-", 0)
                                .inheritInheritableThreadLocals(false)
                                .factory(),
                        IO_RATIO);
        this.count = count;
        this.grpcWorkers = new ThreadPoolExecutor(
                count,
                count,
                WORKER_IDLE_SECONDS,
                TimeUnit.SECONDS,
                new LinkedBlockingQueue<>(),
                Thread.ofPlatform()
                        .name("grpc-worker/", 0)
                        .daemon(true)
                        .inheritInheritableThreadLocals(false)
                        .factory());
        grpcWorkers.allowCoreThreadTimeOut(true);
    }

    /** Starts the event loops, native ones where the platform has them. */
    public static EventLoops start(int count) {
        VertxOptions options = new VertxOptions()
                .setEventLoopPoolSize(count)
                .setPreferNativeTransport(true)
                // EventLoopWatch reports the same, with the model.
                .setBlockedThreadCheckInterval(TimeUnit.DAYS.toMillis(1))
                .setMaxEventLoopExecuteTime(Long.MAX_VALUE)
                .setMaxWorkerExecuteTime(Long.MAX_VALUE)
                // Nothing is served from the class path: no cache of its files in the directory of temporary files.
                .setFileSystemOptions(new FileSystemOptions()
                        .setClassPathResolvingEnabled(false)
                        .setFileCachingEnabled(false));
        Vertx vertx = Vertx.vertx(options);
        vertx.exceptionHandler(error -> LOG.error("task of event loop failed", error));
        return new EventLoops((VertxInternal) vertx, count);
    }

    /**
     * Reports blocked loops, checked by a server every second until it is closed. The server is not live once one of them
     * has ended, which leaves its connections without a thread.
     */
    public void watch(NereidServer server, boolean withMetrics) {
        VertxInternal internal = (VertxInternal) vertx;
        List<Executor> all = new ArrayList<>();
        internal.nettyEventLoopGroup().forEach(all::add);
        internal.acceptorEventLoopGroup().forEach(all::add);
        if (withMetrics) {
            metrics.forEach(all::add);
        }
        server.everySecond(new EventLoopWatch(all, server::instanceOn, server.fatalErrors()::onThreadEnded)::check);
    }

    public int count() {
        return count;
    }

    /** Returns the loops in the form that HTTP needs. */
    public Vertx vertx() {
        return vertx;
    }

    /** Returns the loop for metrics and probes, which a plugin that blocks the loops of requests does not hold. */
    public Context metrics() {
        return ((VertxInternal) vertx)
                .contextBuilder()
                .withThreadingModel(ThreadingModel.EVENT_LOOP)
                .withEventLoop(metrics.next())
                .build();
    }

    /** Returns the same loops in the form that gRPC needs. */
    public EventLoopGroups groups() {
        VertxInternal internal = (VertxInternal) vertx;
        return new EventLoopGroups(
                internal.acceptorEventLoopGroup(),
                internal.nettyEventLoopGroup(),
                internal.transport().serverChannelFactory(false),
                grpcWorkers);
    }

    /** Ends the loops. Ports and servers on them must have been closed before. Blocks. */
    @Override
    public void close() {
        grpcWorkers.shutdown();
        CompletableFuture<Void> closed = vertx.close().toCompletionStage().toCompletableFuture();
        try {
            Future<?> ended = metrics.shutdownGracefully(0, CLOSE_SECONDS, TimeUnit.SECONDS);
            ended.get(CLOSE_SECONDS, TimeUnit.SECONDS);
            closed.get(CLOSE_SECONDS, TimeUnit.SECONDS);
        } catch (ExecutionException | TimeoutException e) {
            throw new IllegalStateException("event loops: did not end within " + CLOSE_SECONDS + " s", e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
