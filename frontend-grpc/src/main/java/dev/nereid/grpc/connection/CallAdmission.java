package dev.nereid.grpc.connection;

import dev.nereid.api.InferenceException;
import dev.nereid.api.Quoted;
import dev.nereid.api.RefusalCause;
import dev.nereid.api.Refusals;
import dev.nereid.api.RequestProtocol;
import dev.nereid.grpc.wire.GrpcErrors;
import dev.nereid.grpc.wire.MessageDecompressor;
import dev.nereid.grpc.wire.RequestFailures;
import dev.nereid.spi.ErrorCode;
import inference.GRPCInferenceServiceGrpc;
import io.netty.channel.ChannelHandlerContext;
import io.netty.handler.codec.http2.Http2ConnectionHandler;
import io.netty.handler.codec.http2.Http2Error;
import io.netty.handler.codec.http2.Http2Exception;
import io.netty.handler.codec.http2.Http2Headers;
import io.netty.handler.codec.http2.Http2Stream;
import io.netty.util.AsciiString;
import org.jspecify.annotations.Nullable;

/**
 * Admits or refuses the calls of one connection before gRPC sees them. Confined to the event loop of the connection.
 */
final class CallAdmission {
    /** The maximum number of open calls on a stalled connection; further ones are refused. */
    private static final int MAX_UNREAD = 256;

    /** The minimum initial window, in bytes, of a connection with many calls. */
    private static final int MIN_WINDOW = 1 << 10;

    private static final String NO_WINDOW =
            "too many calls for an initial window of less than " + MIN_WINDOW + " bytes";

    /** The path of the inference method with many messages from the client in one call. */
    private static final AsciiString STREAMING = AsciiString.cached(
            "/" + GRPCInferenceServiceGrpc.getModelStreamInferMethod().getFullMethodName());

    private static final AsciiString ENCODING = AsciiString.cached("grpc-encoding");

    private static final AsciiString REFLECTION = AsciiString.cached("/grpc.reflection.");

    private final ConnectionLimits connection;
    private final Http2ConnectionHandler http2;
    private final ArrivingMessages messages;
    private final OpenCallLimit calls;
    private final Refusals refusals;

    CallAdmission(
            ConnectionLimits connection,
            Http2ConnectionHandler http2,
            ArrivingMessages messages,
            OpenCallLimit calls,
            Refusals refusals) {
        this.connection = connection;
        this.http2 = http2;
        this.messages = messages;
        this.calls = calls;
        this.refusals = refusals;
    }

    /** Resets streams of gRPC. */
    interface StreamReset {
        /** Reports a reset of a stream to gRPC, as if the client had sent it. */
        void reset(ChannelHandlerContext ctx, int streamId, long errorCode) throws Http2Exception;
    }

    /**
     * Refuses a call that exceeds a limit, before gRPC sees it. Resets a stream if its request ends with trailers: gRPC
     * clients send none, and gRPC would begin a second call on the same stream. Returns whether the call was refused or
     * reset.
     */
    boolean refusesHeaders(ChannelHandlerContext ctx, int streamId, Http2Headers headers, StreamReset grpc)
            throws Http2Exception {
        Http2Stream stream = http2.connection().stream(streamId);
        if (stream.isTrailersReceived()) {
            ArrivingMessage message = messages.of(stream);
            if (message == null || !message.isRefused()) {
                grpc.reset(ctx, streamId, Http2Error.PROTOCOL_ERROR.code());
            }
            var _ = http2.resetStream(ctx, streamId, Http2Error.PROTOCOL_ERROR.code(), ctx.newPromise());
            return true;
        }
        int active = connection.active();
        if (active > ConnectionLimits.MANY_STREAMS && blocksResponses()) {
            connection.disconnect(NO_WINDOW);
            // Frames already received are not decoded: each further call would take time of the event loop.
            throw Http2Exception.connectionError(Http2Error.ENHANCE_YOUR_CALM, NO_WINDOW);
        }
        if (active > MAX_UNREAD && connection.unread().wasStalled()) {
            refuse(ctx, streamId, calls.unreadRefusal());
            return true;
        }
        if (calls.isFullFor(active)) {
            refuse(ctx, streamId, calls.refusal());
            return true;
        }
        CharSequence encoding = headers.get(ENCODING);
        if (encoding != null && !MessageDecompressor.isKnown(encoding)) {
            refuse(ctx, streamId, unknownEncoding(encoding));
            return true;
        }
        if (isStreaming(headers.path())) {
            messages.mark(stream, ArrivingMessages.Kind.STREAMING);
        }
        return false;
    }

    /** Returns the error of an unknown encoding; its text begins like the transport's. */
    private static InferenceException unknownEncoding(CharSequence encoding) {
        return InferenceException.refusal(
                ErrorCode.UNSUPPORTED,
                RefusalCause.UNSUPPORTED,
                "Can't find decompressor for " + Quoted.text(encoding.toString()) + " (expected: one of "
                        + MessageDecompressor.ENCODINGS + ")");
    }

    private static boolean isStreaming(@Nullable CharSequence path) {
        return path != null
                && (STREAMING.contentEquals(path)
                        || AsciiString.regionMatches(path, false, 0, REFLECTION, 0, REFLECTION.length()));
    }

    /** Refuses a call with a response of headers alone, which gRPC does not see. */
    void refuse(ChannelHandlerContext ctx, int streamId, InferenceException error) {
        countRefusal(error);
        Http2Stream stream = http2.connection().stream(streamId);
        ArrivingMessage message = messages.of(stream);
        if (message == null) {
            message = messages.track(stream, true);
        } else {
            messages.count(message, 0);
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

    /** Counts and logs the refusal of a call that gRPC does not see. */
    private void countRefusal(InferenceException error) {
        refusals.count(RequestProtocol.GRPC, error.refusalCause());
        RequestFailures.log("", "", error);
    }

    /** Resets a refused stream that the client has not ended. It could otherwise stay open without limit. */
    private void cutOff(ChannelHandlerContext ctx, Http2Stream stream, ArrivingMessage refused) {
        if (stream.state() == Http2Stream.State.HALF_CLOSED_LOCAL && !stream.isResetSent()) {
            refused.cutOff();
            var _ = http2.resetStream(ctx, stream.id(), Http2Error.NO_ERROR.code(), ctx.newPromise());
            http2.flush(ctx);
        }
    }

    /** Returns whether the client's initial window is too small: then each response waits for a window update. */
    private boolean blocksResponses() {
        return http2.connection().remote().flowController().initialWindowSize() < MIN_WINDOW;
    }
}
