package dev.nereid.grpc.connection;

import io.grpc.Attributes;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelOutboundBuffer;
import io.netty.handler.codec.http2.Http2ConnectionAdapter;
import io.netty.handler.codec.http2.Http2ConnectionHandler;
import io.netty.handler.codec.http2.Http2Error;
import io.netty.handler.codec.http2.Http2Exception;
import io.netty.handler.codec.http2.Http2Stream;
import io.netty.util.concurrent.FastThreadLocalThread;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Watches one connection's calls, resets and unread responses. Confined to the event loop of the connection, except for
 * {@link #unread} and {@link #disconnect}.
 *
 * <p>The connection is checked four times a second while it has calls, and sooner if their number doubles. The HTTP/2
 * layer reports the streams; a small call costs a few additions here.
 */
public final class ConnectionLimits extends Http2ConnectionAdapter {
    /** The attribute that holds the connection of a call. */
    public static final Attributes.Key<ConnectionLimits> KEY = Attributes.Key.create("dev.nereid.grpc.connection");

    private static final Logger LOG = LoggerFactory.getLogger(ConnectionLimits.class);

    /** A change in the number of calls that is published at once. Smaller changes wait for the next tick. */
    private static final int PUBLISH_STEP = 32;

    /** Open streams from which a connection is checked between ticks. */
    static final int MANY_STREAMS = 64;

    private final ConnectionServices services;
    private final EventLoopConnections loop;
    private final Channel channel;
    private final Http2ConnectionHandler http2;
    private final ArrivingMessages messages;
    private final IncompleteCalls incompleteCalls;
    private final StalledConnections.Connection unread;
    private final FloodLimit resets;
    private final FloodLimit emptyFrames;
    private int active;
    private int published;
    private int activeAtLastCheck = MANY_STREAMS / 2;
    private long windowGranted;
    private long ended;
    private int lastReset;
    private boolean disconnecting;

    /** {@code true} once the channel is closed. Its calls no longer count for all connections then. */
    private boolean closed;

    ConnectionLimits(
            ConnectionServices services,
            EventLoopConnections loop,
            Channel channel,
            Http2ConnectionHandler http2,
            ArrivingMessages messages) {
        this.services = services;
        this.loop = loop;
        this.channel = channel;
        this.http2 = http2;
        this.messages = messages;
        this.incompleteCalls = new IncompleteCalls(http2.connection(), messages, services.nanoTime());
        this.unread = services.unread().register(this::disconnect);
        this.resets = FloodLimit.ofResets(services.nanoTime());
        this.emptyFrames = FloodLimit.ofEmptyFrames(services.nanoTime());
    }

    void start() {
        active = http2.connection().numActiveStreams();
        http2.connection().addListener(this);
        var _ = channel.closeFuture().addListener(_ -> end());
    }

    private void end() {
        unread.unregister();
        loop.remove(this);
        services.calls().add(-published);
        published = 0;
        closed = true; // the HTTP/2 layer closes the streams only now, one by one
    }

    /** Returns the unread responses of this connection. Safe for use by any thread. */
    StalledConnections.Connection unread() {
        return unread;
    }

    /** Runs a task on the event loop of this connection. Safe for use by any thread. */
    void execute(Runnable task) {
        channel.eventLoop().execute(task);
    }

    public TransportMemory memory() {
        return services.memory();
    }

    /** Says whether the current thread is an event loop. */
    public static boolean isOnEventLoop() {
        return Thread.currentThread() instanceof FastThreadLocalThread;
    }

    Executor workers() {
        return services.workers();
    }

    /** Runs a task that takes an event loop too long on a worker, or on this thread if the workers were shut down. */
    public void executeOnWorker(Runnable task) {
        try {
            services.workers().execute(task);
        } catch (RejectedExecutionException _) {
            task.run();
        }
    }

    @Override
    public void onStreamActive(Http2Stream stream) {
        active++;
        if (active == 1) {
            loop.scheduleTick();
        }
        if (active - published >= PUBLISH_STEP) {
            publish();
            if (active >= 2 * activeAtLastCheck) {
                check();
            }
        }
    }

    @Override
    public void onStreamClosed(Http2Stream stream) {
        active--;
        if (published - active >= PUBLISH_STEP) {
            publish();
        }
        ArrivingMessage message = messages.of(stream);
        if (message != null) {
            messages.count(message, 0);
        }
        if (message != null && message.isCutOff()) {
            return; // no fault of the client
        }
        if (stream.isResetSent()) {
            spend(resets, "too many streams are reset");
        } else if (stream.id() != lastReset) {
            ended++;
            resets.allowOneMore();
        }
    }

    private void publish() {
        if (!closed) {
            services.calls().add(active - published);
            published = active;
        }
    }

    /** Returns how many calls are open. */
    int active() {
        return active;
    }

    /** Says whether calls are open, or were when their number was last published. */
    boolean isActive() {
        return active > 0 || published > 0;
    }

    /** Publishes the number of calls and checks for unread responses. */
    void check() {
        publish();
        incompleteCalls.recordNewestStream();
        activeAtLastCheck = Math.max(active, MANY_STREAMS / 2);
        if (active == 0) {
            unread.observe(0, Long.MIN_VALUE);
            return;
        }
        releaseReadMessages();
        ChannelOutboundBuffer buffer = channel.unsafe().outboundBuffer();
        long pending = buffer == null ? 0 : buffer.totalPendingWriteBytes();
        int window = http2.connection()
                .remote()
                .flowController()
                .windowSize(http2.connection().connectionStream());
        // A granted window is no progress, and a move of bytes between buffers is none.
        long sent = windowGranted - window - pending + ended;
        unread.observe(pending > 0 && !channel.isWritable() ? active : waiting(), sent);
    }

    /** Ends the count of messages that gRPC has read since they arrived. */
    private void releaseReadMessages() {
        incompleteCalls.count(stream -> {
            messages.releaseIfRead(stream);
            return false;
        });
    }

    private int waiting() {
        return incompleteCalls.count(
                stream -> http2.connection().remote().flowController().hasFlowControlled(stream));
    }

    /** Returns the number of open calls without a request of the client. */
    int incomplete() {
        return incompleteCalls.incomplete();
    }

    /** Returns the number of calls among {@link #incomplete} that have been open for seconds. */
    int stale() {
        return incompleteCalls.stale();
    }

    void onWindowGranted(int bytes) {
        windowGranted += bytes;
    }

    void countReset(int streamId) {
        lastReset = streamId;
        spend(resets, "too many streams are reset");
    }

    void countEmptyFrame() {
        spend(emptyFrames, "too many frames carry nothing");
    }

    private void spend(FloodLimit budget, String reason) {
        if (!budget.tryCount() && !disconnecting) {
            disconnect(reason);
        }
    }

    /** Closes the connection at once. Safe for use by any thread. */
    void disconnect(String reason) {
        // Never in the middle of a frame: its handlers go on to use the connection.
        channel.eventLoop().execute(() -> disconnectNow(reason));
    }

    private void disconnectNow(String reason) {
        ChannelHandlerContext ctx = channel.pipeline().context(http2);
        if (ctx == null || disconnecting || !channel.isOpen()) {
            return;
        }
        disconnecting = true;
        services.disconnects().accept(channel.remoteAddress(), reason);
        LOG.debug("connection of {} closed: {}", channel.remoteAddress(), reason);
        http2.onError(ctx, true, Http2Exception.connectionError(Http2Error.ENHANCE_YOUR_CALM, "%s", reason));
        channel.unsafe().close(channel.voidPromise());
    }
}
