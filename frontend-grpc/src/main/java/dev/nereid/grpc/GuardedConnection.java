package dev.nereid.grpc;

import dev.nereid.api.InferenceException;
import dev.nereid.api.Quoted;
import dev.nereid.api.RefusalCause;
import dev.nereid.api.RequestProtocol;
import dev.nereid.spi.ErrorCode;
import inference.GRPCInferenceServiceGrpc;
import io.grpc.Attributes;
import io.netty.buffer.ByteBuf;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelOutboundBuffer;
import io.netty.handler.codec.http2.Http2Connection;
import io.netty.handler.codec.http2.Http2ConnectionAdapter;
import io.netty.handler.codec.http2.Http2ConnectionHandler;
import io.netty.handler.codec.http2.Http2Error;
import io.netty.handler.codec.http2.Http2Exception;
import io.netty.handler.codec.http2.Http2Headers;
import io.netty.handler.codec.http2.Http2Stream;
import io.netty.util.AsciiString;
import io.netty.util.concurrent.FastThreadLocalThread;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What the front end watches of one connection. Confined to the event loop of the connection, but for
 * {@link #unread} and {@link #disconnect}.
 *
 * <p>It is checked four times a second while it has calls, and sooner if their number doubles. The HTTP/2 layer tells of streams; nothing here costs a small call more than a few additions.
 */
final class GuardedConnection extends Http2ConnectionAdapter {
    /** Where a call finds its connection. */
    static final Attributes.Key<GuardedConnection> KEY = Attributes.Key.create("dev.nereid.grpc.connection");

    private static final Logger LOG = LoggerFactory.getLogger(GuardedConnection.class);

    /** A difference that is told at once to those that count for all connections; smaller ones wait for the next tick. */
    private static final int STEP = 32;

    /** Responses that may wait on a stalled connection until it is refused further calls. */
    private static final int MAX_UNREAD = 256;

    /** Open streams at which a connection is looked at between ticks. */
    private static final int MANY_STREAMS = 64;

    /** The initial window, in bytes, with which a connection may have more than {@link #MANY_STREAMS} calls. */
    private static final int MIN_WINDOW = 1 << 10;

    private static final String NO_WINDOW =
            "too many calls for an initial window of less than " + MIN_WINDOW + " bytes";

    /** Resets, by the client or for its mistakes, within ten seconds, besides one for each call that ends well. */
    private static final int MAX_RESETS = 2_000;

    /** Frames that carry nothing, within ten seconds. */
    private static final int MAX_EMPTY_FRAMES = 1_000;

    /** How much longer than a frame the buffer may be that it keeps in use. */
    private static final long MAX_WASTE = 8;

    /** For how long a call is open at least, and for twice as long at most, before it counts as stale without a request. */
    private static final long STALE_NANOS = 3_000_000_000L;

    /** Services and methods whose clients may send many messages with one call. */
    private static final AsciiString STREAMING = AsciiString.cached(
            "/" + GRPCInferenceServiceGrpc.getModelStreamInferMethod().getFullMethodName());

    private static final AsciiString ENCODING = AsciiString.cached("grpc-encoding");

    private static final AsciiString REFLECTION = AsciiString.cached("/grpc.reflection.");

    /** The longest frame with the message of a call that is not counted. */
    private static final int SMALL_BYTES = 4 << 10;

    /** What a frame of a message takes on the heap. */
    private static final int FRAME_BYTES = 256;

    /** What is known of a call, unless it is one with one message of which nothing small has come. */
    private enum Kind {
        /** Many messages may come, and none has. */
        STREAMING,
        /** Many messages may come, and one has. */
        STREAMING_ASKED,
        /** One message may come, and has. It was small and is not counted; the limit on calls bounds such messages. */
        SMALL
    }

    private final ConnectionServices services;
    private final EventLoopConnections loop;
    private final Channel channel;
    private final Http2ConnectionHandler http2;
    private final Http2Connection.PropertyKey arriving;
    private final Http2Connection.PropertyKey kind;
    private final UnreadResponses.Connection unread;
    private final FrameBudget resets;
    private final FrameBudget emptyFrames;
    private int active;
    private int published;
    private int looked = MANY_STREAMS / 2;
    private long granted;
    private long ended;
    private int lastReset;
    private boolean disconnecting;

    // The newest stream when that was noted last, and when it was noted before: it has been there for a while.
    private int newest;
    private int stale;
    private long noted;

    /** Whether the channel is closed, and its calls are not among those of all connections any more. */
    private boolean over;

    GuardedConnection(
            ConnectionServices services, EventLoopConnections loop, Channel channel, Http2ConnectionHandler http2) {
        this.services = services;
        this.loop = loop;
        this.channel = channel;
        this.http2 = http2;
        this.arriving = http2.connection().newKey();
        this.kind = http2.connection().newKey();
        this.unread = services.unread().join(this::disconnect);
        this.resets = new FrameBudget(MAX_RESETS, services.nanoTime());
        this.emptyFrames = new FrameBudget(MAX_EMPTY_FRAMES, services.nanoTime());
        this.noted = services.nanoTime().getAsLong();
    }

    /** Begins to watch. */
    void begin() {
        active = http2.connection().numActiveStreams();
        http2.connection().addListener(this);
        http2.decoder().frameListener(new GuardedFrames(http2.decoder().frameListener(), this));
        var _ = channel.closeFuture().addListener(_ -> end());
    }

    private void end() {
        unread.leave();
        loop.remove(this);
        services.calls().add(-published);
        published = 0;
        over = true; // the HTTP/2 layer closes the streams only now, one by one
    }

    /** Returns where large responses are counted. Safe for use by any thread. */
    UnreadResponses.Connection unread() {
        return unread;
    }

    /** Does something on the event loop of this connection. Safe for use by any thread. */
    void execute(Runnable task) {
        channel.eventLoop().execute(task);
    }

    /** Returns where messages are counted. */
    TransportMemory memory() {
        return services.memory();
    }

    /** Says whether the thread is one that must not be kept busy. */
    static boolean isOnEventLoop() {
        return Thread.currentThread() instanceof FastThreadLocalThread;
    }

    Executor workers() {
        return services.workers();
    }

    /** Has a worker do what takes an event loop too long; or does it at once, if there are no workers any more. */
    void elsewhere(Runnable task) {
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
        if (active - published >= STEP) {
            publish();
            if (active >= 2 * looked) {
                look();
            }
        }
    }

    @Override
    public void onStreamClosed(Http2Stream stream) {
        active--;
        if (published - active >= STEP) {
            publish();
        }
        ArrivingMessage message = stream.getProperty(arriving);
        if (message != null) {
            count(message, 0);
        }
        if (message != null && message.isCutOff()) {
            return; // no fault of the client
        }
        if (stream.isResetSent()) {
            spend(resets, "too many streams are reset");
        } else if (stream.id() != lastReset) {
            ended++;
            resets.earn();
        }
    }

    private void publish() {
        if (!over) {
            services.calls().add(active - published);
            published = active;
        }
    }

    /** Returns how many calls are open. */
    int active() {
        return active;
    }

    /** Says whether calls are open, or were when that was told last. */
    boolean isActive() {
        return active > 0 || published > 0;
    }

    /** Looks what waits on this connection. */
    void look() {
        publish();
        age();
        looked = Math.max(active, MANY_STREAMS / 2);
        if (active == 0) {
            unread.observe(0, Long.MIN_VALUE);
            return;
        }
        recount();
        ChannelOutboundBuffer buffer = channel.unsafe().outboundBuffer();
        long pending = buffer == null ? 0 : buffer.totalPendingWriteBytes();
        int window = http2.connection()
                .remote()
                .flowController()
                .windowSize(http2.connection().connectionStream());
        // Window that the client grants is no progress, nor is what only moves from one buffer to another.
        long sent = granted - window - pending + ended;
        unread.observe(pending > 0 && !channel.isWritable() ? active : waiting(), sent);
    }

    /** Says whether the client has asked that no response be sent before it allows each of them. */
    private boolean takesNoResponses() {
        return http2.connection().remote().flowController().initialWindowSize() < MIN_WINDOW;
    }

    /** Ends the count of messages that gRPC has read since they arrived. */
    private void recount() {
        count(stream -> {
            ArrivingMessage message = stream.getProperty(arriving);
            if (message != null) {
                long held = message.held(unconsumed(stream));
                count(message, Math.min(message.counted(), held));
                if (held == 0 && message.isBetweenMessages() && !message.isRefused()) {
                    stream.removeProperty(arriving); // frames of whole messages need none
                }
            }
            return false;
        });
    }

    private int waiting() {
        return count(stream -> http2.connection().remote().flowController().hasFlowControlled(stream));
    }

    /** Returns how many calls are open of which the client has not sent a request. */
    int incomplete() {
        return count(this::isIncomplete);
    }

    /** Returns how many calls among {@link #incomplete} have been open for seconds. */
    int stale() {
        return stale == 0 ? 0 : count(stream -> stream.id() <= stale && isIncomplete(stream));
    }

    /** Says whether the server waits for the client. Streams of many requests may be open for good once one has come. */
    private boolean isIncomplete(Http2Stream stream) {
        return switch (stream.state()) {
            case OPEN -> !stream.isHeadersSent() && stream.getProperty(kind) != Kind.STREAMING_ASKED;
            case HALF_CLOSED_LOCAL -> true;
            default -> false;
        };
    }

    /** Takes note of the newest stream from time to time, so that it is known which are old. */
    private void age() {
        long now = services.nanoTime().getAsLong();
        if (now - noted >= STALE_NANOS) {
            stale = newest;
            newest = http2.connection().remote().lastStreamCreated();
            noted = now;
        }
    }

    private int count(Predicate<Http2Stream> streams) {
        int[] count = new int[1];
        try {
            http2.connection().forEachActiveStream(stream -> {
                if (streams.test(stream)) {
                    count[0]++;
                }
                return true;
            });
        } catch (Http2Exception e) {
            throw new IllegalStateException("a visitor that throws nothing threw", e);
        }
        return count[0];
    }

    /** Notes that the client granted window for all streams together. */
    void granted(int bytes) {
        granted += bytes;
    }

    /** Counts a reset by the client. */
    void spendReset(int streamId) {
        lastReset = streamId;
        spend(resets, "too many streams are reset");
    }

    /** Counts a frame that carries nothing. */
    void spendEmptyFrame() {
        spend(emptyFrames, "too many frames carry nothing");
    }

    private void spend(FrameBudget budget, String reason) {
        if (!budget.spend() && !disconnecting) {
            disconnect(reason);
        }
    }

    /**
     * Refuses a call before anything else sees it, if there are too many. Resets one whose request ends with headers: a
     * request of gRPC does not, and gRPC would begin a second call on the same stream. Returns whether it did either.
     */
    boolean refuses(ChannelHandlerContext ctx, int streamId, Http2Headers headers, GuardedFrames frames)
            throws Http2Exception {
        Http2Stream stream = http2.connection().stream(streamId);
        if (stream.isTrailersReceived()) {
            ArrivingMessage message = stream.getProperty(arriving);
            if (message == null || !message.isRefused()) {
                frames.reset(ctx, streamId, Http2Error.PROTOCOL_ERROR.code());
            }
            var _ = http2.resetStream(ctx, streamId, Http2Error.PROTOCOL_ERROR.code(), ctx.newPromise());
            return true;
        }
        if (active > MANY_STREAMS && takesNoResponses()) {
            disconnect(NO_WINDOW);
            // What else was read is not decoded: each call would cost its share of the event loop.
            throw Http2Exception.connectionError(Http2Error.ENHANCE_YOUR_CALM, NO_WINDOW);
        }
        if (active > MAX_UNREAD && unread.wasStalled()) {
            refuse(ctx, streamId, services.calls().unreadRefusal());
            return true;
        }
        if (services.calls().isFullFor(active)) {
            refuse(ctx, streamId, services.calls().refusal());
            return true;
        }
        CharSequence encoding = headers.get(ENCODING);
        if (encoding != null && !CompressedMessages.isKnown(encoding)) {
            refuse(ctx, streamId, unknownEncoding(encoding));
            return true;
        }
        if (isStreaming(headers.path())) {
            stream.setProperty(kind, Kind.STREAMING);
        }
        return false;
    }

    /** Begins in the words of the transport. */
    private static InferenceException unknownEncoding(CharSequence encoding) {
        return InferenceException.refusal(
                ErrorCode.UNSUPPORTED,
                RefusalCause.UNSUPPORTED,
                "Can't find decompressor for " + Quoted.text(encoding.toString()) + " (expected: one of "
                        + CompressedMessages.ENCODINGS + ")");
    }

    private static boolean isStreaming(@Nullable CharSequence path) {
        return path != null
                && (STREAMING.contentEquals(path)
                        || AsciiString.regionMatches(path, false, 0, REFLECTION, 0, REFLECTION.length()));
    }

    private void refuse(ChannelHandlerContext ctx, int streamId, InferenceException error) {
        countRefusal(error);
        Http2Stream stream = http2.connection().stream(streamId);
        ArrivingMessage message = stream.getProperty(arriving);
        if (message == null) {
            message = new ArrivingMessage(true);
            stream.setProperty(arriving, message);
        } else {
            count(message, 0);
        }
        message.refuse();
        ArrivingMessage refused = message;
        var _ = http2.encoder()
                .writeHeaders(ctx, streamId, GrpcErrors.http2(error, stream.isHeadersSent()), 0, true, ctx.newPromise())
                .addListener(sent -> {
                    if (sent.isSuccess()) {
                        cutOff(ctx, stream, refused);
                    }
                });
    }

    /** Counts and logs the refusal of a call that nothing else sees. */
    private void countRefusal(InferenceException error) {
        services.refusals().count(RequestProtocol.GRPC, error.refusalCause());
        RequestFailures.log("", "", error);
    }

    /** Closes a refused stream whose client has not ended it, which would stay open for as long as the client likes. */
    private void cutOff(ChannelHandlerContext ctx, Http2Stream stream, ArrivingMessage refused) {
        if (stream.state() == Http2Stream.State.HALF_CLOSED_LOCAL && !stream.isResetSent()) {
            refused.cutOff();
            var _ = http2.resetStream(ctx, stream.id(), Http2Error.NO_ERROR.code(), ctx.newPromise());
            http2.flush(ctx);
        }
    }

    /** Handles a frame of data. */
    int data(ChannelHandlerContext ctx, int streamId, ByteBuf data, int padding, boolean end, GuardedFrames frames)
            throws Http2Exception {
        if (!end && !data.isReadable()) {
            spendEmptyFrame();
        }
        Http2Stream stream = http2.connection().stream(streamId);
        ArrivingMessage message = stream.getProperty(arriving);
        if (message == null) {
            Kind known = stream.getProperty(kind);
            if (known == null && !end && data.readableBytes() <= SMALL_BYTES && ArrivingMessage.isWhole(data)) {
                stream.setProperty(kind, Kind.SMALL);
                return passSmall(ctx, streamId, data, padding, frames);
            }
            boolean isUnary = known == null || known == Kind.SMALL;
            boolean tracked = !end && (isUnary || !ArrivingMessage.isWhole(data));
            if (!tracked) {
                if (!isUnary) {
                    stream.setProperty(kind, Kind.STREAMING_ASKED);
                }
                int returned = frames.pass(ctx, streamId, data, padding, end);
                if (unconsumed(stream) > padding && stream.state() != Http2Stream.State.CLOSED) {
                    countUnread(ctx, stream, frames);
                }
                return returned;
            }
            message = new ArrivingMessage(isUnary);
            stream.setProperty(arriving, message);
        }
        int size = data.readableBytes();
        if (message.isRefused()) {
            return size + padding;
        }
        if (message.add(data) && stream.getProperty(kind) == Kind.STREAMING) {
            stream.setProperty(kind, Kind.STREAMING_ASKED);
        }
        ByteBuf buffer = root(data);
        int filled = Math.max(1, buffer.writerIndex());
        // Its bytes are copied then, and it is free again.
        boolean isWasteful = 2L * filled < buffer.capacity() || (size > 0 && MAX_WASTE * size < buffer.capacity());
        long slack = FRAME_BYTES + (isWasteful ? 0 : (long) size * (buffer.capacity() - filled) / filled);
        message.addSlack(slack);
        try {
            count(message, message.counted() + size + slack);
        } catch (InferenceException error) {
            count(message, 0);
            frames.reset(ctx, streamId, Http2Error.CANCEL.code()); // which frees what has arrived
            refuse(ctx, streamId, error);
            return size + padding;
        }
        int returned;
        ByteBuf frame = isWasteful ? ctx.alloc().buffer(Math.max(1, size)).writeBytes(data.duplicate()) : data.retain();
        ArrivingMessage.CURRENT.set(message);
        try {
            returned = frames.pass(ctx, streamId, frame, padding, end);
        } finally {
            ArrivingMessage.CURRENT.set(null);
            frame.release();
        }
        if (end) {
            message.end();
        }
        count(message, message.held(unconsumed(stream) - padding));
        return returned;
    }

    /** Gives the message of a call to gRPC, which keeps it until the client ends the request; without the buffer it came in. */
    private static int passSmall(
            ChannelHandlerContext ctx, int streamId, ByteBuf data, int padding, GuardedFrames frames)
            throws Http2Exception {
        if (root(data).capacity() <= 2 * data.readableBytes()) {
            return frames.pass(ctx, streamId, data, padding, false);
        }
        ByteBuf copy = ctx.alloc().buffer(data.readableBytes()).writeBytes(data.duplicate());
        try {
            return frames.pass(ctx, streamId, copy, padding, false);
        } finally {
            copy.release();
        }
    }

    /** Returns the buffer that a frame keeps in use. */
    private static ByteBuf root(ByteBuf frame) {
        ByteBuf buffer = frame;
        for (ByteBuf next = buffer.unwrap(); next != null; next = next.unwrap()) {
            buffer = next;
        }
        return buffer;
    }

    /** Counts whole messages that were not asked for. */
    private void countUnread(ChannelHandlerContext ctx, Http2Stream stream, GuardedFrames frames)
            throws Http2Exception {
        ArrivingMessage message = new ArrivingMessage(false);
        stream.setProperty(arriving, message);
        try {
            count(message, unconsumed(stream));
        } catch (InferenceException error) {
            frames.reset(ctx, stream.id(), Http2Error.CANCEL.code()); // which frees what has arrived
            refuse(ctx, stream.id(), error);
        }
    }

    private int unconsumed(Http2Stream stream) {
        return http2.connection().local().flowController().unconsumedBytes(stream);
    }

    private void count(ArrivingMessage message, long bytes) {
        long more = bytes - message.counted();
        if (more > 0) {
            services.memory().reserve(more);
        } else if (more < 0) {
            services.memory().release(-more);
        }
        message.count(bytes);
    }

    /** Ends the connection at once. Safe for use by any thread. */
    void disconnect(String reason) {
        // Never in the middle of a frame, whose handlers go on to use the connection.
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
