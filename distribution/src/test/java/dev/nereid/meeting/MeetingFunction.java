package dev.nereid.meeting;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import dev.nereid.spi.function.TensorFunction;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * The function {@code meeting}: its outputs are zeros, after the model of the parameter {@code other} has begun, too. It
 * writes the times of its begin and end, of {@link System#nanoTime}, to the file {@code times} in its model's directory.
 */
public final class MeetingFunction implements TensorFunction {
    private static final String BEGUN = "begun";
    private static final long TIMEOUT_NANOS = TimeUnit.SECONDS.toNanos(30);
    private static final long LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(2);

    @Override
    public String name() {
        return "meeting";
    }

    @Override
    public void apply(InferenceRequest request, ModelContext model) {
        long begin = System.nanoTime();
        Path directory = model.modelDirectory();
        Path other = directory.resolveSibling(model.parameters().required("other"));
        try {
            Files.createFile(directory.resolve(BEGUN));
            while (Files.notExists(other.resolve(BEGUN))) {
                if (System.nanoTime() - begin > TIMEOUT_NANOS) {
                    throw new BackendException(ErrorCode.UNAVAILABLE, other.getFileName() + " did not begin meanwhile");
                }
                LockSupport.parkNanos(LOOK_NANOS);
            }
            for (TensorSpec output : model.settings().outputs()) {
                Shape shape = output.dims().prepend(request.batchSize());
                request.response()
                        .allocate(output.name(), output.type(), shape)
                        .data()
                        .fill((byte) 0);
            }
            Files.writeString(directory.resolve("times"), begin + " " + System.nanoTime());
        } catch (IOException e) {
            throw new BackendException(ErrorCode.INTERNAL, e.toString(), e);
        }
    }
}
