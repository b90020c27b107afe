package dev.nereid.http.connection;

import dev.nereid.http.body.HttpErrors;
import dev.nereid.http.body.QueuedBytes;
import dev.nereid.http.body.RequestLimits;
import dev.nereid.http.body.TrailingHeaderSpace;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelOutboundBuffer;
import io.netty.channel.ChannelPipeline;
import io.netty.channel.ChannelPromise;
import io.netty.channel.socket.DuplexChannel;
import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpHeaderValues;
import io.netty.handler.codec.http.HttpResponse;
import io.netty.handler.codec.http.HttpStatusClass;
import io.netty.handler.ssl.SslHandler;
import io.vertx.core.http.impl.http1.VertxHttpObject;
import java.net.HttpURLConnection;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * One HTTP/1.1 connection: pipelining, memory limits, timeouts and lingering close. Confined to its event loop.
 *
 * <p>A client may send requests before it has read the responses to earlier ones. At most
 * {@value RequestLimits#MAX_IN_PROGRESS} of them are decoded at a time; the rest stays in the socket, but for what the
 * last read brought. A response is in progress until the transport has taken it, which takes no more than
 * {@value #MAX_UNSENT_BYTES} bytes that the client has not read.
 *
 * <p>A connection is closed in steps, since a socket that is closed while data arrives is reset, and its client may lose
 * the last response: what waits is sent, then the output is shut down, then what arrives is discarded until the client
 * closes too, for {@value #LINGER_SECONDS} seconds at most.
 */
final class ServerConnection implements IdleConnections.Connection {
    /** While so much waits for a client of one connection, no more responses are begun. */
    static final int MAX_UNSENT_BYTES = 32 << 10;

    private static final long LINGER_SECONDS = 2;
    private static final long LINGER_NANOS = TimeUnit.SECONDS.toNanos(LINGER_SECONDS);

    /** How long the last response may wait for a client that reads nothing of it. */
    private static final long LAST_RESPONSE_NANOS = TimeUnit.SECONDS.toNanos(10);

    private static final long NOT_LINGERING = Long.MAX_VALUE;

    /** The event loop's server, which knows the time and whether it closes. */
    interface Port {
        /** Returns the time in nanoseconds, which may be a second old. */
        long now();

        /** Says whether responses announce the end of their connections. */
        boolean isClosing();

        /** Says whether connections are closed as soon as they have no request. */
        boolean isDrained();

        /**
         * Counts a request that a connection has refused, of which no path is known.
         *
         * @param status the status of the response
         */
        void countRefusal(int status);
    }

    private final Port server;
    private final Channel channel;
    private final ConnectionDeadlines deadlines;
    private final RequestDecoder decoder;
    private final @Nullable TrailingHeaderSpace blanks;
    private final QueuedBytes queued;
    private final boolean isAcceptedDuringDrain;

    private boolean isDecodingPaused;
    private boolean isResuming;
    private boolean isEnding;
    private boolean hasBegunResponse;
    private boolean closesAfterResponse;
    private @Nullable String problem;
    private long lingersUntil = NOT_LINGERING;

    /**
     * Takes a connection over that has been accepted.
     *
     * @param port the port
     * @param channel the transport
     * @param timeouts the bounds on its time
     * @param blanks keeps the blanks at the end of header values; null if nobody needs them
     * @param isLate whether the port had begun to close before
     */
    ServerConnection(
            Port port, Channel channel, HttpTimeouts timeouts, @Nullable TrailingHeaderSpace blanks, boolean isLate) {
        this.server = port;
        this.channel = channel;
        this.deadlines = new ConnectionDeadlines(timeouts, port.now());
        this.blanks = blanks;
        this.decoder = new RequestDecoder(this, blanks);
        this.queued = QueuedBytes.of(channel);
        this.isAcceptedDuringDrain = isLate;
        ChannelPipeline pipeline = channel.pipeline();
        pipeline.replace("httpDecoder", "httpDecoder", decoder);
        pipeline.addBefore("handler", "responses", new ResponseWriteHandler(this));
    }

    /** Says whether the port had begun to close when this was accepted. */
    boolean isAcceptedDuringDrain() {
        return isAcceptedDuringDrain;
    }

    @Override
    public boolean isOpen() {
        return channel.isActive();
    }

    @Override
    public boolean isEvictable() {
        return !isEnding && deadlines.isEvictable();
    }

    @Override
    public boolean hasResponded() {
        return deadlines.hasResponded();
    }

    @Override
    public long idleSince() {
        return deadlines.since();
    }

    /** Says whether no request was read that is not answered, and the connection is not being closed. */
    boolean hasNoRequestInProgress() {
        return !isEnding && deadlines.inProgress() == 0 && !deadlines.readsBody();
    }

    /** Says whether all was sent, and only the end of the client is waited for. */
    boolean isLingering() {
        return lingersUntil != NOT_LINGERING;
    }

    /** Says whether a request was read that waits for the response to another. */
    boolean hasPipelinedRequest() {
        return deadlines.inProgress() > 1;
    }

    // What the decoder tells.

    boolean discardsInput() {
        return isEnding || problem != null;
    }

    /**
     * Says whether nothing more is to be decoded now, and stops the reading if so. The body of a request that waits for
     * the response to another is not decoded either: it would wait on the heap.
     */
    boolean pauseDecoding() {
        if (deadlines.inProgress() < RequestLimits.MAX_IN_PROGRESS) {
            return false;
        }
        isDecodingPaused = true;
        channel.config().setAutoRead(false); // each time: the transport switches it on for reasons of its own
        return true;
    }

    /** Says whether what has arrived is not decoded before a response was written. */
    boolean isDecodingPaused() {
        return isDecodingPaused;
    }

    void bytesArrived(int count) {
        deadlines.bytesArrived(count, server.now());
    }

    void headerRead() {
        deadlines.headerRead();
    }

    void requestRead(boolean hasMore) {
        deadlines.requestRead(hasMore, server.now());
        if (server.isDrained() && hasNoRequestInProgress()) { // the response was written before the body ended
            channel.eventLoop().execute(this::closeIfNoRequestInProgress);
        }
    }

    private void closeIfNoRequestInProgress() {
        if (hasNoRequestInProgress()) { // no other request has arrived meanwhile
            close();
        }
    }

    /** A body breaks the rules of HTTP: nobody knows where the next request begins. */
    void onInvalidBody(@Nullable Throwable cause) {
        problem = "this is no request of HTTP/1.1" + (cause == null ? "" : ": " + cause.getMessage());
        refuseInvalidBody();
    }

    private void refuseInvalidBody() {
        if (problem != null && deadlines.inProgress() <= 1) {
            respondAndClose(HttpURLConnection.HTTP_BAD_REQUEST, "Bad Request", problem);
        }
    }

    // What the output tells.

    /** A part of a response is about to be written. */
    void onWrite(VertxHttpObject part) {
        if (part.isEnded() && !server.isClosing()) {
            return;
        }
        if (part instanceof HttpResponse head && head.status().codeClass() != HttpStatusClass.INFORMATIONAL) {
            hasBegunResponse = true;
            if (server.isClosing() && deadlines.inProgress() == 1 && !deadlines.readsBody()) {
                head.headers().set(HttpHeaderNames.CONNECTION, HttpHeaderValues.CLOSE);
                closesAfterResponse = true;
            }
        }
    }

    /** The last part of a response was written. */
    void responseWritten() {
        deadlines.responseWritten(server.now());
        hasBegunResponse = false;
        if (blanks != null) {
            blanks.responseWritten();
        }
        if (isDecodingPaused || problem != null || server.isClosing()) {
            afterResponse();
        }
    }

    private void afterResponse() {
        if (server.isClosing() && hasNoRequestInProgress() && (closesAfterResponse || server.isDrained())) {
            channel.eventLoop().execute(this::close);
        } else if (problem != null) {
            refuseInvalidBody();
        } else if (isDecodingPaused && !isResuming) {
            isResuming = true;
            channel.eventLoop().execute(this::resume);
        }
    }

    /** Decodes more of what has arrived, and reads on when that is used up. */
    private void resume() {
        isResuming = false;
        if (isEnding || !channel.isActive()) {
            return;
        }
        isDecodingPaused = false;
        // First: what is decoded now may stop the reading again, and the transport does so once only.
        channel.config().setAutoRead(true);
        decoder.decodeMore();
    }

    // What the port decides.

    /**
     * Closes the connection if it has taken too long.
     *
     * @param now the time
     * @param elapsed how long the last check is ago
     */
    void check(long now, long elapsed) {
        ConnectionDeadlines.Verdict verdict =
                deadlines.check(now, elapsed, channel.config().isAutoRead(), pendingState());
        if (isEnding) {
            if ((lingersUntil != NOT_LINGERING && now - lingersUntil > 0)
                    || deadlines.stalledNanos(now) > LAST_RESPONSE_NANOS) {
                abort();
            }
            return;
        }
        switch (verdict) {
            case CONTINUE -> {}
            case CLOSE -> close();
            case ABORT -> abort();
            case REQUEST_TIMEOUT ->
                respondAndClose(
                        HttpURLConnection.HTTP_CLIENT_TIMEOUT,
                        "Request Timeout",
                        deadlines.readsBody() ? "the body arrives too slowly" : "the header arrives too slowly");
        }
    }

    /** Returns for how long responses have waited without progress. */
    long stalledNanos(long now) {
        return deadlines.stalledNanos(now);
    }

    /** Returns how much memory waits for the client: unsent responses, and requests that are not decoded. */
    long pendingBytes() {
        ChannelOutboundBuffer unsent = channel.unsafe().outboundBuffer();
        return decoder.undecodedBytes() + (unsent == null ? 0 : unsent.totalPendingWriteBytes());
    }

    /** Measures how fast the client reads long texts. */
    void measureReadRate(long elapsed) {
        ChannelOutboundBuffer unsent = channel.unsafe().outboundBuffer();
        queued.measure(elapsed, unsent == null ? 0 : unsent.totalPendingWriteBytes() - unsent.currentProgress());
    }

    /** Returns how long it takes until the client has read the long texts that wait for it. */
    long drainNanos() {
        return queued.drainNanos();
    }

    /** Returns how much memory of the heap is taken by long texts that wait for the client. */
    long queuedBytes() {
        return queued.count();
    }

    private long pendingState() {
        ChannelOutboundBuffer unsent = channel.unsafe().outboundBuffer();
        if (unsent == null || unsent.totalPendingWriteBytes() == 0) {
            return 0;
        }
        return Math.max(1, unsent.totalPendingWriteBytes() * 31 + unsent.currentProgress());
    }

    /** Closes the connection in steps, after what was written. */
    @SuppressWarnings("FutureReturnValueIgnored") // each step looks at the one before
    void close() {
        channel.close();
    }

    /** Closes the connection at once; what waits is lost. */
    @Override
    public void abort() {
        channel.unsafe().close(channel.voidPromise());
    }

    /** Answers in place of a handler, unless one has begun to, and closes the connection. */
    private void respondAndClose(int status, String phrase, String error) {
        if (isEnding) {
            return;
        }
        boolean mayAnswer = !hasBegunResponse && (deadlines.inProgress() == 1 || !deadlines.readsBody());
        if (mayAnswer) {
            server.countRefusal(status);
            decoder.write(HttpErrors.lastResponse(status, phrase, error));
        }
        close();
    }

    /** Sends what waits, then the end, and waits for that of the client. */
    @SuppressWarnings("FutureReturnValueIgnored") // each step looks at the one before
    void lingeringClose(ChannelHandlerContext context, ChannelPromise promise) {
        if (!channel.isActive()) {
            context.close(promise);
            return;
        }
        channel.closeFuture().addListener(closed -> promise.trySuccess());
        if (isEnding) {
            return;
        }
        isEnding = true;
        channel.config().setAutoRead(true);
        context.writeAndFlush(Unpooled.EMPTY_BUFFER).addListener(sent -> endOutput(sent.isSuccess()));
    }

    @SuppressWarnings("FutureReturnValueIgnored") // each step looks at the one before
    private void endOutput(boolean isSent) {
        if (!isSent || !channel.isActive()) {
            abort();
            return;
        }
        lingersUntil = server.now() + LINGER_NANOS;
        SslHandler encryption = channel.pipeline().get(SslHandler.class);
        if (encryption == null) {
            shutdownOutput();
        } else {
            encryption.closeOutbound().addListener(told -> shutdownOutput());
        }
    }

    @SuppressWarnings("FutureReturnValueIgnored") // each step looks at the one before
    private void shutdownOutput() {
        if (channel instanceof DuplexChannel duplex) {
            ChannelFuture ended = duplex.shutdownOutput();
            ended.addListener(done -> {
                if (!done.isSuccess()) {
                    abort();
                }
            });
        } else {
            abort();
        }
    }
}
