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
 * {@value RequestLimits#MAX_IN_PROGRESS} of them are decoded at a time; the rest stays in the socket, except for the
 * bytes of the last read. A response is in progress until the transport has accepted it, which buffers no more than
 * {@value #MAX_UNSENT_BYTES} unread bytes.
 *
 * <p>A connection is closed with lingering, since a socket that is closed while data arrives is reset, and its client
 * may lose the last response: pending bytes are sent, then the output is shut down, then received bytes are discarded
 * until the client closes too, for {@value #LINGER_SECONDS} seconds at most.
 */
final class ServerConnection implements IdleConnections.Connection {
    /** The number of unsent bytes of one connection from which no further response is started. */
    static final int MAX_UNSENT_BYTES = 32 << 10;

    private static final long LINGER_SECONDS = 2;
    private static final long LINGER_NANOS = TimeUnit.SECONDS.toNanos(LINGER_SECONDS);

    /** How long the last response may wait for a client that does not read it. */
    private static final long LAST_RESPONSE_NANOS = TimeUnit.SECONDS.toNanos(10);

    private static final long NOT_LINGERING = Long.MAX_VALUE;

    /** The event loop's server: its clock and its drain state. */
    interface Port {
        /** Returns the time in nanoseconds, which may be a second old. */
        long now();

        /** Returns whether responses announce the end of their connections. */
        boolean isClosing();

        /** Returns whether connections are closed as soon as they have no request. */
        boolean isDrained();

        /** Counts a request that a connection has refused, without a known path. */
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
     * Takes over an accepted connection.
     *
     * @param server the event loop's server
     * @param blanks keeps the blanks at the end of header values; null if headers are not forwarded
     * @param isAcceptedDuringDrain whether the drain had begun before
     */
    ServerConnection(
            Port server,
            Channel channel,
            HttpTimeouts timeouts,
            @Nullable TrailingHeaderSpace blanks,
            boolean isAcceptedDuringDrain) {
        this.server = server;
        this.channel = channel;
        this.deadlines = new ConnectionDeadlines(timeouts, server.now());
        this.blanks = blanks;
        this.decoder = new RequestDecoder(this, blanks);
        this.queued = QueuedBytes.of(channel);
        this.isAcceptedDuringDrain = isAcceptedDuringDrain;
        ChannelPipeline pipeline = channel.pipeline();
        pipeline.replace("httpDecoder", "httpDecoder", decoder);
        pipeline.addBefore("handler", "responses", new ResponseWriteHandler(this));
    }

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

    /** Returns whether no request is in progress, and the connection is not being closed. */
    boolean hasNoRequestInProgress() {
        return !isEnding && deadlines.inProgress() == 0 && !deadlines.readsBody();
    }

    /** Returns whether all was sent, and the connection waits for the client to close. */
    boolean isLingering() {
        return lingersUntil != NOT_LINGERING;
    }

    /** Returns whether a request was read that waits for the response to another. */
    boolean hasPipelinedRequest() {
        return deadlines.inProgress() > 1;
    }

    // Events of the decoder.

    /** Returns whether no further request is decoded: the connection ends, or its end was announced. */
    boolean discardsInput() {
        return isEnding || problem != null || (closesAfterResponse && hasNoRequestInProgress());
    }

    /**
     * Pauses decoding and reading if enough requests are in progress; returns whether it did. The body of a pipelined
     * request is not decoded either: it would wait on the heap.
     */
    boolean pauseDecoding() {
        if (deadlines.inProgress() < RequestLimits.MAX_IN_PROGRESS) {
            return false;
        }
        isDecodingPaused = true;
        channel.config().setAutoRead(false); // each time: the transport may switch it on
        return true;
    }

    /** Returns whether decoding is paused until a response was written. */
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
        // The response was written before the body ended.
        if ((closesAfterResponse || server.isDrained()) && hasNoRequestInProgress()) {
            channel.eventLoop().execute(this::closeIfNoRequestInProgress);
        }
    }

    private void closeIfNoRequestInProgress() {
        if (hasNoRequestInProgress()) { // no other request has arrived meanwhile
            close();
        }
    }

    /** Refuses a malformed body and closes the connection. The start of the next request is unknown. */
    void onInvalidBody(@Nullable Throwable cause) {
        problem = HttpErrors.NO_REQUEST + (cause == null ? "" : ": chunks: " + cause.getMessage());
        refuseInvalidBody();
    }

    private void refuseInvalidBody() {
        if (problem != null && deadlines.inProgress() <= 1) {
            respondAndClose(HttpURLConnection.HTTP_BAD_REQUEST, "Bad Request", problem);
        }
    }

    // Events of the output.

    /** Prepares for a part of a response that is about to be written. */
    void onWrite(VertxHttpObject part) {
        if (part.isEnded() && !server.isClosing()) {
            return;
        }
        if (part instanceof HttpResponse header && header.status().codeClass() != HttpStatusClass.INFORMATIONAL) {
            hasBegunResponse = true;
            if (server.isClosing() && deadlines.inProgress() == 1) { // its body may still be read
                header.headers().set(HttpHeaderNames.CONNECTION, HttpHeaderValues.CLOSE);
                closesAfterResponse = true;
            }
        }
    }

    /** Records that the last part of a response was written. */
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

    /** Decodes more of the received bytes, and resumes reading after them. */
    private void resume() {
        isResuming = false;
        if (isEnding || !channel.isActive()) {
            return;
        }
        isDecodingPaused = false;
        // First: decoding may pause the reading again, and the transport does so only once.
        channel.config().setAutoRead(true);
        decoder.decodeMore();
    }

    // Actions of the server.

    /** Closes the connection if a timeout has expired. {@code elapsed} are the nanoseconds since the last check. */
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

    /** Returns how long responses have waited without progress. */
    long stalledNanos(long now) {
        return deadlines.stalledNanos(now);
    }

    /** Returns the memory of unsent responses and of requests that are not decoded. */
    long pendingBytes() {
        ChannelOutboundBuffer unsent = channel.unsafe().outboundBuffer();
        return decoder.undecodedBytes() + (unsent == null ? 0 : unsent.totalPendingWriteBytes());
    }

    /** Measures how fast the client reads long texts. */
    void measureReadRate(long elapsed) {
        ChannelOutboundBuffer unsent = channel.unsafe().outboundBuffer();
        queued.measure(elapsed, unsent == null ? 0 : unsent.totalPendingWriteBytes() - unsent.currentProgress());
    }

    /** Returns how long the client takes to read the long texts that wait for it. */
    long drainNanos() {
        return queued.drainNanos();
    }

    /** Returns the heap memory of long texts that wait for the client. */
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

    /** Closes the connection with lingering, after pending bytes were sent. */
    @SuppressWarnings("FutureReturnValueIgnored") // each step looks at the one before
    void close() {
        channel.close();
    }

    /** Closes the connection at once; pending bytes are lost. */
    @Override
    public void abort() {
        channel.unsafe().close(channel.voidPromise());
    }

    /** Responds in place of a handler, unless one has begun to, and closes the connection. */
    private void respondAndClose(int status, String phrase, String error) {
        if (isEnding) {
            return;
        }
        boolean mayRespond = !hasBegunResponse && (deadlines.inProgress() == 1 || !deadlines.readsBody());
        if (mayRespond) {
            server.countRefusal(status);
            decoder.write(HttpErrors.lastResponse(status, phrase, error));
        }
        close();
    }

    /** Sends pending bytes, then the end, and waits for the client to close. */
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
            encryption.closeOutbound().addListener(sent -> shutdownOutput());
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
