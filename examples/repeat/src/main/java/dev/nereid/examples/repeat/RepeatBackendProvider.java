package dev.nereid.examples.repeat;

import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendContext;
import dev.nereid.spi.BackendProvider;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/** Provider of the backend {@code repeat}. Immutable. */
public final class RepeatBackendProvider implements BackendProvider {
    @Override
    public String name() {
        return "repeat";
    }

    @Override
    public Backend create(BackendContext context) {
        return new RepeatBackend(
                model -> (action, millis) -> CompletableFuture.delayedExecutor(
                                millis, TimeUnit.MILLISECONDS, model.executor())
                        .execute(action),
                System::nanoTime);
    }
}
