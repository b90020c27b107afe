package dev.nereid.hasty;

import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendContext;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.BackendTraits;
import dev.nereid.spi.Batch;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.InstanceContext;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * Provides the backend {@code hasty}, which declares its executions short. {@code OUTPUT0} is {@code INPUT0}, and
 * {@code THREAD} the name of the thread that executes. The first number of the input may select more: -1 fails, -2
 * breaks, -3 takes 50 ms, and -4 waits as long as there is a file {@code gate} in the model's directory, and reports
 * the wait by a file {@code gate.waiting} beside it. Immutable.
 */
public final class HastyBackendProvider implements BackendProvider {
    private static final long LIE_MILLIS = 50;
    private static final long LOOK_MILLIS = 5;
    private static final ValueLayout.OfFloat FLOAT =
            ValueLayout.JAVA_FLOAT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    @Override
    public String name() {
        return "hasty";
    }

    @Override
    public Backend create(BackendContext context) {
        return new Backend() {
            @Override
            public BackendTraits traits() {
                return BackendTraits.DEFAULT.withExecution(BackendTraits.Execution.SHORT);
            }

            @Override
            public Model load(ModelContext model) {
                return new HastyModel(model.modelDirectory().resolve("gate"));
            }
        };
    }

    private record HastyModel(Path gate) implements Model {
        @Override
        public ModelInstance newInstance(InstanceContext context) {
            return this::execute;
        }

        private void execute(Batch batch) {
            for (InferenceRequest request : batch.requests()) {
                Tensor input = request.input("INPUT0").orElseThrow();
                String thread = Thread.currentThread().getName();
                switch ((int) input.data().get(FLOAT, 0)) {
                    case -1 -> throw new BackendException(ErrorCode.INTERNAL, "failed on " + thread);
                    case -2 -> throw new IllegalStateException("broken");
                    case -3 -> pause(LIE_MILLIS);
                    case -4 -> await();
                    default -> {}
                }
                request.response().put("OUTPUT0", input);
                byte[] name = thread.getBytes(StandardCharsets.UTF_8);
                MemorySegment text = request.response()
                        .allocateBytes("THREAD", Shape.of(1), Integer.BYTES + name.length)
                        .data();
                text.set(INT, 0, name.length);
                MemorySegment.copy(name, 0, text, ValueLayout.JAVA_BYTE, Integer.BYTES, name.length);
            }
        }

        private void await() {
            try {
                Files.createFile(gate.resolveSibling("gate.waiting"));
            } catch (IOException e) {
                throw new BackendException(ErrorCode.UNAVAILABLE, "a thread waits at the gate already", e);
            }
            while (Files.exists(gate)) {
                pause(LOOK_MILLIS);
            }
        }

        private static void pause(long millis) {
            long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(millis);
            for (long left = end - System.nanoTime(); left > 0; left = end - System.nanoTime()) {
                LockSupport.parkNanos(left);
            }
        }
    }
}
