package dev.nereid.paced;

import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendContext;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.Batch;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.InferenceResponse;
import dev.nereid.spi.ResponseSender;
import dev.nereid.spi.Shape;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * Provides the backend {@code paced}, which is decoupled and sends {@code COUNT} responses of 1 KB, each with its number
 * in front. {@code MODE} selects how: 0 sends without regard to the client, 1 by actions that run when the sender is
 * ready, and 2 on a thread of the request that looks whether it is. Immutable.
 */
public final class PacedBackendProvider implements BackendProvider {
    private static final int TEXT_BYTES = 1_000;
    private static final int NUMBER_DIGITS = 8;
    private static final long LOOK_NANOS = TimeUnit.MICROSECONDS.toNanos(200);
    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    @Override
    public String name() {
        return "paced";
    }

    @Override
    public Backend create(BackendContext context) {
        return model -> place -> PacedBackendProvider::execute;
    }

    private static void execute(Batch batch) {
        for (InferenceRequest request : batch.requests()) {
            Responses responses = new Responses(request.sender(), number(request, "COUNT"));
            switch (number(request, "MODE")) {
                case 0 -> responses.sendAll();
                case 1 -> responses.sendWhileReady();
                default -> Thread.ofPlatform().start(responses::sendWhenReady);
            }
        }
    }

    private static int number(InferenceRequest request, String input) {
        return request.input(input).orElseThrow().data().get(INT, 0);
    }

    /** The responses to one request. Used by one thread at a time. */
    private static final class Responses {
        private final ResponseSender sender;
        private final int count;
        private int next;

        Responses(ResponseSender sender, int count) {
            this.sender = sender;
            this.count = count;
        }

        private boolean isOver() {
            return next == count || sender.isCancelled();
        }

        void sendAll() {
            try {
                while (!isOver()) {
                    sendNext();
                }
                sender.complete();
            } catch (RuntimeException | Error e) {
                fail(e);
            }
        }

        void sendWhileReady() {
            try {
                while (!isOver() && sender.isReady()) {
                    sendNext();
                }
                if (isOver()) {
                    sender.complete();
                } else {
                    sender.onReady(this::sendWhileReady);
                }
            } catch (RuntimeException | Error e) {
                fail(e);
            }
        }

        void sendWhenReady() {
            try {
                while (!isOver()) {
                    if (sender.isReady()) {
                        sendNext();
                    } else {
                        LockSupport.parkNanos(LOOK_NANOS);
                    }
                }
                sender.complete();
            } catch (RuntimeException | Error e) {
                fail(e);
            }
        }

        private void fail(Throwable failure) {
            sender.fail(new BackendException(ErrorCode.INTERNAL, "response " + next + " failed: " + failure, failure));
        }

        private void sendNext() {
            InferenceResponse response = sender.newResponse();
            boolean filled = false;
            try {
                MemorySegment text = response.allocateBytes("TEXT", Shape.of(1), Integer.BYTES + TEXT_BYTES)
                        .data();
                text.set(INT, 0, TEXT_BYTES);
                text.asSlice(Integer.BYTES).fill((byte) '.');
                byte[] digits = String.format("%0" + NUMBER_DIGITS + "d", next).getBytes(StandardCharsets.US_ASCII);
                MemorySegment.copy(digits, 0, text, ValueLayout.JAVA_BYTE, Integer.BYTES, NUMBER_DIGITS);
                filled = true;
            } finally {
                if (!filled) {
                    response.discard();
                }
            }
            next++;
            sender.send(response);
        }
    }
}
