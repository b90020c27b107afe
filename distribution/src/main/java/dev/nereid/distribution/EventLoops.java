package dev.nereid.distribution;

import dev.nereid.grpc.EventLoopGroups;
import io.vertx.core.Vertx;
import io.vertx.core.VertxOptions;
import io.vertx.core.file.FileSystemOptions;
import io.vertx.core.internal.VertxInternal;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * The event loops of the process: one group, which serves HTTP, gRPC and metrics alike. Owned by {@link RunningServer};
 * safe for use by any thread.
 */
final class EventLoops implements AutoCloseable {
    /** How long event loops may take to end once all ports are closed. */
    private static final long CLOSE_SECONDS = 5;

    private final Vertx vertx;
    private final int count;

    private EventLoops(Vertx vertx, int count) {
        this.vertx = vertx;
        this.count = count;
    }

    /**
     * Starts the event loops.
     *
     * @param count how many
     * @return the loops, native ones where the platform has them
     */
    static EventLoops start(int count) {
        VertxOptions options = new VertxOptions()
                .setEventLoopPoolSize(count)
                .setPreferNativeTransport(true)
                // Nothing is served from the class path: no cache of its files in the folder for temporary ones.
                .setFileSystemOptions(new FileSystemOptions()
                        .setClassPathResolvingEnabled(false)
                        .setFileCachingEnabled(false));
        return new EventLoops(Vertx.vertx(options), count);
    }

    /** Returns how many there are. */
    int count() {
        return count;
    }

    /** Returns the loops as HTTP takes them. */
    Vertx vertx() {
        return vertx;
    }

    /** Returns the same loops as gRPC takes them. */
    EventLoopGroups groups() {
        VertxInternal internal = (VertxInternal) vertx;
        return new EventLoopGroups(
                internal.acceptorEventLoopGroup(),
                internal.nettyEventLoopGroup(),
                internal.transport().serverChannelFactory(false));
    }

    /** Ends the loops. Whatever runs on them must have been closed before. Blocks. */
    @Override
    public void close() {
        CompletableFuture<Void> closed = vertx.close().toCompletionStage().toCompletableFuture();
        try {
            closed.get(CLOSE_SECONDS, TimeUnit.SECONDS);
        } catch (ExecutionException | TimeoutException e) {
            throw new IllegalStateException("event loops: did not end within " + CLOSE_SECONDS + " s", e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
