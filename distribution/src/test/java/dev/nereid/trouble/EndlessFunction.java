package dev.nereid.trouble;

import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.function.TensorFunction;
import java.util.concurrent.atomic.AtomicLong;

/** The function {@code endless}, which never returns. */
public final class EndlessFunction implements TensorFunction {
    private static final AtomicLong ROUNDS = new AtomicLong();

    @Override
    public String name() {
        return "endless";
    }

    @Override
    public void apply(InferenceRequest request, ModelContext model) {
        while (ROUNDS.incrementAndGet() != 0) {
            Thread.onSpinWait();
        }
    }
}
