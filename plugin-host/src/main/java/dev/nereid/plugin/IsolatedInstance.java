package dev.nereid.plugin;

import dev.nereid.plugin.boundary.PluginBoundary;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.SequenceEnd;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import org.jspecify.annotations.Nullable;

/**
 * Forwards to a plugin's model instance through the plugin boundary. Immutable; as safe for concurrent use as the
 * instance.
 *
 * <p>Exceptions of {@link #execute} pass unchanged to the scheduler, which fails the batch with them.
 */
final class IsolatedInstance implements ModelInstance {
    private static final String CHECK = "ModelInstance.checkReady";

    private final ModelInstance instance;
    private final PluginBoundary boundary;

    IsolatedInstance(ModelInstance instance, PluginBoundary boundary) {
        this.instance = instance;
        this.boundary = boundary;
    }

    @Override
    public CompletableFuture<Void> started() {
        return boundary.invokeStage("ModelInstance.started", instance::started);
    }

    @Override
    public void execute(Batch batch) {
        ClassLoader before = boundary.enter();
        try {
            instance.execute(batch);
        } finally {
            PluginBoundary.exit(before);
        }
    }

    @Override
    public void sequenceEnded(Sequence.Id id, SequenceEnd reason) {
        ClassLoader before = boundary.enter();
        try {
            instance.sequenceEnded(id, reason);
        } finally {
            PluginBoundary.exit(before);
        }
    }

    @Override
    public CompletionStage<Void> checkReady() {
        CompletableFuture<Void> outcome = new CompletableFuture<>();
        try {
            CompletionStage<Void> stage = boundary.invoke(CHECK, instance::checkReady);
            boundary.invoke(CHECK, () -> stage.whenComplete((_, failure) -> end(outcome, failure)));
        } catch (BackendException e) {
            outcome.completeExceptionally(e);
        }
        return outcome;
    }

    private void end(CompletableFuture<Void> outcome, @Nullable Throwable failure) {
        if (failure == null) {
            outcome.complete(null);
        } else {
            outcome.completeExceptionally(boundary.translate(CHECK, failure));
        }
    }

    @Override
    public void executionOverdue() {
        boundary.call("ModelInstance.executionOverdue", () -> {
            instance.executionOverdue();
            return true;
        });
    }

    @Override
    public void close() {
        boundary.close("ModelInstance.close", instance::close);
    }
}
