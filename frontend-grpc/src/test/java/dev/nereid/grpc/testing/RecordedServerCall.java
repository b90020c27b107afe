package dev.nereid.grpc.testing;

import dev.nereid.grpc.connection.Parsed;
import dev.nereid.grpc.wire.InferMessage;
import dev.nereid.grpc.wire.InferResponseMessage;
import inference.ModelStreamInferResponse;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.ServerCall;
import io.grpc.Status;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * A fake stream call that records written messages and checks their order. Fails if two threads write at a time, if
 * anything is written out of order, or without need. Safe for use by any thread.
 */
public final class RecordedServerCall extends ServerCall<Parsed<InferMessage>, InferResponseMessage> {
    public final List<ModelStreamInferResponse> written = new ArrayList<>();
    public final AtomicInteger requested = new AtomicInteger();
    public volatile boolean ready = true;
    public volatile @Nullable Status status;

    /** Receives each message and the end, before the client does; ignores them by default. */
    public Consumer<String> journal = _ -> {};

    private final AtomicBoolean busy = new AtomicBoolean();
    private boolean headersSent;

    /** Thrown instead of sending anything, as by a transport without memory; none by default. */
    @Nullable
    public Error failure;

    private void exclusively(Runnable action) {
        if (!busy.compareAndSet(false, true)) {
            throw new AssertionError("two threads write at a time");
        }
        try {
            action.run();
        } finally {
            busy.set(false);
        }
    }

    @Override
    public void request(int count) {
        requested.addAndGet(count);
    }

    @Override
    public void sendHeaders(Metadata headers) {
        exclusively(() -> {
            failIfBroken();
            headersSent = true;
        });
    }

    @Override
    public void sendMessage(InferResponseMessage message) {
        exclusively(() -> {
            failIfBroken();
            journal.accept("message");
            if (!headersSent || status != null) {
                throw new AssertionError("message out of order");
            }
            try {
                written.add(ModelStreamInferResponse.parseFrom(message.readAllBytes()));
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        });
    }

    private void failIfBroken() {
        if (failure != null) {
            throw failure;
        }
    }

    @Override
    public void close(Status result, Metadata trailers) {
        exclusively(() -> {
            if (status != null) {
                throw new AssertionError("closed twice");
            }
            journal.accept(result.getCode().name());
            status = result;
        });
    }

    @Override
    public boolean isReady() {
        return ready && status == null;
    }

    @Override
    public boolean isCancelled() {
        return false;
    }

    @Override
    public MethodDescriptor<Parsed<InferMessage>, InferResponseMessage> getMethodDescriptor() {
        throw new UnsupportedOperationException("the method does not matter");
    }
}
