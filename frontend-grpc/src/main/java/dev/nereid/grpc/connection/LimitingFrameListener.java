package dev.nereid.grpc.connection;

import dev.nereid.api.InferenceException;
import io.netty.buffer.ByteBuf;
import io.netty.channel.ChannelHandlerContext;
import io.netty.handler.codec.http2.Http2CodecUtil;
import io.netty.handler.codec.http2.Http2Connection;
import io.netty.handler.codec.http2.Http2Error;
import io.netty.handler.codec.http2.Http2Exception;
import io.netty.handler.codec.http2.Http2Flags;
import io.netty.handler.codec.http2.Http2FrameListener;
import io.netty.handler.codec.http2.Http2FrameListenerDecorator;
import io.netty.handler.codec.http2.Http2Headers;
import io.netty.handler.codec.http2.Http2Settings;
import io.netty.handler.codec.http2.Http2Stream;

/**
 * Passes a client's HTTP/2 frames through the connection's checks before gRPC. Confined to the event loop of the
 * connection.
 */
final class LimitingFrameListener extends Http2FrameListenerDecorator implements CallAdmission.StreamReset {
    /** The maximum ratio of a buffer's capacity to the frame that keeps it in use. */
    private static final long MAX_WASTE = 8;

    /** The maximum size of a frame with a message that is not counted. */
    private static final int SMALL_BYTES = 4 << 10;

    /** The heap memory of one frame of a message. */
    private static final int FRAME_BYTES = 256;

    private final ConnectionLimits connection;
    private final CallAdmission admission;
    private final ArrivingMessages messages;
    private final Http2Connection http2;

    LimitingFrameListener(
            Http2FrameListener grpc,
            ConnectionLimits connection,
            CallAdmission admission,
            ArrivingMessages messages,
            Http2Connection http2) {
        super(grpc);
        this.connection = connection;
        this.admission = admission;
        this.messages = messages;
        this.http2 = http2;
    }

    @Override
    public void onHeadersRead(
            ChannelHandlerContext ctx, int streamId, Http2Headers headers, int padding, boolean endStream)
            throws Http2Exception {
        if (!admission.refusesHeaders(ctx, streamId, headers, this)) {
            super.onHeadersRead(ctx, streamId, headers, padding, endStream);
        }
    }

    @Override
    public void onHeadersRead(
            ChannelHandlerContext ctx,
            int streamId,
            Http2Headers headers,
            int streamDependency,
            short weight,
            boolean exclusive,
            int padding,
            boolean endStream)
            throws Http2Exception {
        if (!admission.refusesHeaders(ctx, streamId, headers, this)) {
            super.onHeadersRead(ctx, streamId, headers, streamDependency, weight, exclusive, padding, endStream);
        }
    }

    @Override
    public int onDataRead(ChannelHandlerContext ctx, int streamId, ByteBuf data, int padding, boolean endOfStream)
            throws Http2Exception {
        if (!endOfStream && !data.isReadable()) {
            connection.countEmptyFrame();
        }
        Http2Stream stream = http2.stream(streamId);
        ArrivingMessage message = messages.of(stream);
        if (message == null) {
            ArrivingMessages.Kind kind = messages.kind(stream);
            if (kind == null && !endOfStream && data.readableBytes() <= SMALL_BYTES && ArrivingMessage.isWhole(data)) {
                messages.mark(stream, ArrivingMessages.Kind.SMALL);
                return passSmall(ctx, streamId, data, padding);
            }
            boolean isUnary = kind == null || kind == ArrivingMessages.Kind.SMALL;
            boolean tracked = !endOfStream && (isUnary || !ArrivingMessage.isWhole(data));
            if (!tracked) {
                if (!isUnary) {
                    messages.mark(stream, ArrivingMessages.Kind.STREAMING_RECEIVED);
                }
                int returned = super.onDataRead(ctx, streamId, data, padding, endOfStream);
                if (messages.unconsumed(stream) > padding && stream.state() != Http2Stream.State.CLOSED) {
                    countUnread(ctx, stream);
                }
                return returned;
            }
            message = messages.track(stream, isUnary);
        }
        int size = data.readableBytes();
        if (message.isRefused()) {
            return size + padding;
        }
        if (message.add(data) && messages.kind(stream) == ArrivingMessages.Kind.STREAMING) {
            messages.mark(stream, ArrivingMessages.Kind.STREAMING_RECEIVED);
        }
        ByteBuf buffer = root(data);
        int filled = Math.max(1, buffer.writerIndex());
        // The bytes of a wasteful buffer are copied, which frees it.
        boolean isWasteful = 2L * filled < buffer.capacity() || (size > 0 && MAX_WASTE * size < buffer.capacity());
        long slack = FRAME_BYTES + (isWasteful ? 0 : (long) size * (buffer.capacity() - filled) / filled);
        message.addSlack(slack);
        try {
            messages.count(message, message.counted() + size + slack);
        } catch (InferenceException error) {
            messages.count(message, 0);
            reset(ctx, streamId, Http2Error.CANCEL.code()); // frees the bytes that have arrived
            admission.refuse(ctx, streamId, error);
            return size + padding;
        }
        int returned;
        ByteBuf frame = isWasteful ? ctx.alloc().buffer(Math.max(1, size)).writeBytes(data.duplicate()) : data.retain();
        ArrivingMessage.CURRENT.set(message);
        try {
            returned = super.onDataRead(ctx, streamId, frame, padding, endOfStream);
        } finally {
            ArrivingMessage.CURRENT.set(null);
            frame.release();
        }
        if (endOfStream) {
            message.end();
        }
        messages.count(message, message.held(messages.unconsumed(stream) - padding));
        return returned;
    }

    /** Passes a call's message to gRPC, which keeps it until the request ends; copied out of a much larger buffer. */
    private int passSmall(ChannelHandlerContext ctx, int streamId, ByteBuf data, int padding) throws Http2Exception {
        if (root(data).capacity() <= 2 * data.readableBytes()) {
            return super.onDataRead(ctx, streamId, data, padding, false);
        }
        ByteBuf copy = ctx.alloc().buffer(data.readableBytes()).writeBytes(data.duplicate());
        try {
            return super.onDataRead(ctx, streamId, copy, padding, false);
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

    /** Counts whole messages that gRPC has not requested. */
    private void countUnread(ChannelHandlerContext ctx, Http2Stream stream) throws Http2Exception {
        ArrivingMessage message = messages.track(stream, false);
        try {
            messages.count(message, messages.unconsumed(stream));
        } catch (InferenceException error) {
            reset(ctx, stream.id(), Http2Error.CANCEL.code()); // frees the bytes that have arrived
            admission.refuse(ctx, stream.id(), error);
        }
    }

    @Override
    public void reset(ChannelHandlerContext ctx, int streamId, long errorCode) throws Http2Exception {
        super.onRstStreamRead(ctx, streamId, errorCode);
    }

    @Override
    public void onRstStreamRead(ChannelHandlerContext ctx, int streamId, long errorCode) throws Http2Exception {
        connection.countReset(streamId);
        super.onRstStreamRead(ctx, streamId, errorCode);
    }

    @Override
    public void onWindowUpdateRead(ChannelHandlerContext ctx, int streamId, int windowSizeIncrement)
            throws Http2Exception {
        if (streamId == Http2CodecUtil.CONNECTION_STREAM_ID) {
            connection.onWindowGranted(windowSizeIncrement);
        }
        super.onWindowUpdateRead(ctx, streamId, windowSizeIncrement);
    }

    @Override
    public void onSettingsRead(ChannelHandlerContext ctx, Http2Settings settings) throws Http2Exception {
        connection.countEmptyFrame();
        super.onSettingsRead(ctx, settings);
    }

    @Override
    public void onPriorityRead(
            ChannelHandlerContext ctx, int streamId, int streamDependency, short weight, boolean exclusive)
            throws Http2Exception {
        connection.countEmptyFrame();
        super.onPriorityRead(ctx, streamId, streamDependency, weight, exclusive);
    }

    @Override
    public void onUnknownFrame(
            ChannelHandlerContext ctx, byte frameType, int streamId, Http2Flags flags, ByteBuf payload)
            throws Http2Exception {
        connection.countEmptyFrame();
        super.onUnknownFrame(ctx, frameType, streamId, flags, payload);
    }

    @Override
    public void onPingAckRead(ChannelHandlerContext ctx, long data) throws Http2Exception {
        connection.countEmptyFrame(); // the server pings once in hours
        super.onPingAckRead(ctx, data);
    }
}
