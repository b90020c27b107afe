package dev.nereid.http.connection;

import static java.util.Objects.requireNonNull;

import dev.nereid.http.body.InvalidRequestLineException;
import dev.nereid.http.body.RequestLimits;
import dev.nereid.http.body.TrailingHeaderSpace;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelHandlerContext;
import io.netty.handler.codec.DecoderResult;
import io.netty.handler.codec.TooLongFrameException;
import io.netty.handler.codec.http.HttpContent;
import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpHeaderValues;
import io.netty.handler.codec.http.HttpMessage;
import io.netty.handler.codec.http.HttpRequest;
import io.netty.handler.codec.http.InvalidLineSeparatorException;
import io.netty.handler.codec.http.LastHttpContent;
import io.netty.util.AsciiString;
import io.netty.util.ReferenceCountUtil;
import io.vertx.core.http.Http1ServerConfig;
import io.vertx.core.http.impl.http1.VertxHttpRequestDecoder;
import io.vertx.core.impl.buffer.VertxByteBufAllocator;
import java.io.IOException;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Decodes the requests of one connection and pauses while requests are in progress. Confined to its event loop.
 *
 * <p>It refuses ambiguous requests that the transport's own decoder accepts: with a second {@code Host}, or with a
 * {@code Transfer-Encoding} other than {@code chunked}.
 */
final class RequestDecoder extends VertxHttpRequestDecoder {
    private static final Http1ServerConfig LIMITS = new Http1ServerConfig()
            .setMaxChunkSize(RequestLimits.MAX_CHUNK_BYTES)
            .setMaxInitialLineLength(RequestLimits.MAX_REQUEST_LINE_BYTES)
            .setMaxHeaderSize(RequestLimits.MAX_HEADER_BYTES);

    private final ServerConnection connection;
    private final @Nullable TrailingHeaderSpace blanks;
    private @Nullable ChannelHandlerContext context;
    private int hosts;
    private boolean hasCoding;
    private boolean isFailed;
    private boolean isLineInvalid;

    /** {@code true} if the next content is handled at once: the first of its request, with no earlier in progress. */
    private boolean isHandledImmediately;

    RequestDecoder(ServerConnection connection, @Nullable TrailingHeaderSpace blanks) {
        super(LIMITS);
        this.connection = connection;
        this.blanks = blanks;
    }

    @Override
    public void handlerAdded(ChannelHandlerContext added) throws Exception {
        context = added;
        super.handlerAdded(added);
    }

    void decodeMore() {
        ChannelHandlerContext here = requireNonNull(context, "context");
        try {
            super.channelRead(here, Unpooled.EMPTY_BUFFER);
            channelReadComplete(here);
        } catch (Exception e) {
            here.fireExceptionCaught(e);
        }
    }

    /** Sends bytes that are no response of a handler. */
    @SuppressWarnings("FutureReturnValueIgnored") // the connection ends, whatever the outcome
    void write(ByteBuf bytes) {
        requireNonNull(context, "context").writeAndFlush(bytes);
    }

    /** Returns the memory of received bytes that are not decoded. */
    int undecodedBytes() {
        ByteBuf undecoded = internalBuffer();
        return undecoded.isReadable() ? undecoded.capacity() : 0;
    }

    @Override
    public void channelRead(ChannelHandlerContext here, Object message) throws Exception {
        if (message instanceof ByteBuf bytes) {
            if (connection.discardsInput()) {
                bytes.release();
                return;
            }
            connection.bytesArrived(bytes.readableBytes());
        }
        super.channelRead(here, message);
    }

    /** Ends a read. While decoding is paused, a read without a message must not lead to another. */
    @Override
    public void channelReadComplete(ChannelHandlerContext here) throws Exception {
        if (connection.isDecodingPaused()) {
            discardSomeReadBytes();
            here.fireChannelReadComplete();
        } else {
            super.channelReadComplete(here);
        }
    }

    /** Closes a connection that has ended, without further notification. */
    @Override
    public void exceptionCaught(ChannelHandlerContext here, Throwable problem) throws Exception {
        if (problem instanceof IOException || connection.hasPipelinedRequest()) {
            connection.abort(); // the transport would fail to notify a request that has not begun
        } else {
            super.exceptionCaught(here, problem);
        }
    }

    @Override
    protected void decode(ChannelHandlerContext here, ByteBuf bytes, List<Object> out) throws Exception {
        if (isFailed || connection.discardsInput()) {
            bytes.skipBytes(bytes.readableBytes());
            return;
        }
        if (connection.pauseDecoding()) {
            return;
        }
        int before = out.size();
        int start = bytes.readerIndex();
        super.decode(here, bytes, out);
        int after = out.size();
        if (blanks != null) {
            keepTrailingSpace(blanks, bytes, start, out.subList(before, after));
        }
        if (after > before) {
            inspect(bytes, out, before, after);
        }
    }

    private static void keepTrailingSpace(TrailingHeaderSpace blanks, ByteBuf bytes, int start, List<Object> decoded) {
        blanks.decoded(bytes, start, bytes.readerIndex());
        for (Object part : decoded) {
            if (part instanceof HttpRequest request) {
                blanks.headerRead(request.headers());
            }
            if (part instanceof LastHttpContent) {
                blanks.requestRead();
            }
        }
    }

    private void inspect(ByteBuf bytes, List<Object> out, int first, int after) {
        Object message = out.get(first);
        if (message instanceof HttpRequest request) {
            isHandledImmediately = connection.hasNoRequestInProgress();
            connection.headerRead();
            Throwable problem = problem(request);
            if (problem != null) {
                request.setDecoderResult(DecoderResult.failure(problem));
                isFailed = true;
                while (out.size() > first + 1) {
                    ReferenceCountUtil.release(out.removeLast());
                }
                return;
            }
        }
        Object last = out.get(after - 1);
        if (last instanceof HttpContent content && !content.decoderResult().isSuccess()) {
            isFailed = true;
            Throwable cause = content.decoderResult().cause();
            ReferenceCountUtil.release(out.removeLast());
            connection.onInvalidBody(cause);
            return;
        }
        for (int i = first; i < after; i++) {
            if (out.get(i) instanceof HttpContent content) {
                copyToHeap(content, i, out);
            }
        }
        if (last instanceof LastHttpContent) {
            connection.requestRead(bytes.isReadable());
        }
    }

    /**
     * Copies content that may wait for its handler to the heap. The handler would do so otherwise. When a connection is
     * closed, the transport drops waiting content without releasing pooled memory.
     */
    private void copyToHeap(HttpContent content, int at, List<Object> out) {
        boolean waits = !isHandledImmediately || !(content instanceof LastHttpContent);
        isHandledImmediately = false;
        if (waits && content.content().isReadable()) {
            ByteBuf pooled = content.content();
            ByteBuf copy = VertxByteBufAllocator.DEFAULT.heapBuffer(pooled.readableBytes());
            copy.writeBytes(pooled, pooled.readerIndex(), pooled.readableBytes());
            out.set(at, content.replace(copy));
            content.release();
        }
    }

    private @Nullable Throwable problem(HttpRequest request) {
        if (!request.decoderResult().isSuccess()) {
            return describe(request.decoderResult().cause());
        }
        if (hosts > 1) {
            return new IllegalArgumentException("Host: given " + hosts + " times (expected: once)");
        }
        if (hasCoding) {
            List<String> codings = request.headers().getAll(HttpHeaderNames.TRANSFER_ENCODING);
            if (codings.size() != 1
                    || !HttpHeaderValues.CHUNKED.contentEqualsIgnoreCase(
                            codings.getFirst().strip())) {
                return new IllegalArgumentException("Transfer-Encoding: unknown (expected: chunked)");
            }
        }
        return null;
    }

    /** Returns an exception with a message that names the wrong part of the request. */
    private Throwable describe(Throwable problem) {
        boolean lacksReturn = problem instanceof InvalidLineSeparatorException;
        if (problem instanceof TooLongFrameException || problem instanceof InvalidRequestLineException) {
            return problem;
        } else if (!isLineInvalid) {
            return new IllegalArgumentException(
                    "headers: " + (lacksReturn ? "a line ends with LF alone (expected: CR LF)" : problem.getMessage()),
                    problem);
        }
        return lacksReturn
                ? InvalidRequestLineException.withoutCarriageReturn(problem)
                : InvalidRequestLineException.ofCharacters(problem);
    }

    @Override
    protected HttpMessage createMessage(String[] initialLine) {
        hosts = 0;
        hasCoding = false;
        InvalidRequestLineException.checkVersion(initialLine[1], initialLine[2]);
        try {
            return super.createMessage(initialLine);
        } catch (IllegalArgumentException e) {
            throw InvalidRequestLineException.ofMethod(initialLine[0], e);
        }
    }

    /** Called for a request line that cannot be read. */
    @Override
    protected HttpMessage createInvalidMessage() {
        isLineInvalid = true;
        return super.createInvalidMessage();
    }

    @Override
    protected AsciiString splitHeaderName(byte[] line, int start, int length) {
        AsciiString name = super.splitHeaderName(line, start, length);
        if (length == 4 && HttpHeaderNames.HOST.contentEqualsIgnoreCase(name)) {
            hosts++;
        } else if (length == 17 && HttpHeaderNames.TRANSFER_ENCODING.contentEqualsIgnoreCase(name)) {
            hasCoding = true;
        }
        return name;
    }
}
