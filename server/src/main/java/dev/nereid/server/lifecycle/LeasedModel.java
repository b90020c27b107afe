package dev.nereid.server.lifecycle;

import dev.nereid.api.memory.TensorMemory;
import dev.nereid.plugin.BackendLease;
import dev.nereid.repository.files.VersionFiles;
import dev.nereid.server.executor.ModelExecutor;
import dev.nereid.server.instance.BackendInstance;
import dev.nereid.server.instance.InstanceOptions;
import dev.nereid.server.instance.InstancePlan;
import dev.nereid.server.response.ResponseHolder;
import dev.nereid.spi.Model;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import java.util.function.Function;

/**
 * A backend's model with what it needs until its close: a lease on the backend, and copies of files. Safe for use by any
 * thread.
 *
 * <p>It is closed after the last of its instances: of an instance with a start that cannot be cancelled, the close follows
 * when the load that failed has closed the model already.
 */
final class LeasedModel implements BackendInstance.Owner, AutoCloseable {
    /**
     * The resources of a load until its model is closed. Safe for use by any thread.
     *
     * @param files the private copies of the model's files
     * @param executor runs tasks of the plugin; the rest is released after the last of them
     * @param responses the responses of other models that the plugin holds
     */
    record Resources(BackendLease lease, VersionFiles files, ModelExecutor executor, ResponseHolder responses) {
        /** Releases them after the close of the model, with the last task of the plugin if one goes on. */
        void close() {
            endListeners();
            executor.close(this::release);
        }

        private void endListeners() {
            List<Throwable> ended = executor.logLevels().close();
            if (!ended.isEmpty()) {
                responses.report(
                        ended.size()
                                + (ended.size() == 1 ? " action of onLogLevel was" : " actions of onLogLevel were"),
                        "CancelHook.close, at the latest in Model.close",
                        ended.getFirst());
            }
        }

        /** Releases them after a load that failed. */
        void closeFailed() {
            executor.closeFailed(this::release);
        }

        private void release() {
            try {
                responses.close();
            } finally {
                try {
                    files.close();
                } finally {
                    lease.close();
                }
            }
        }
    }

    private final Model model;
    private final Resources resources;
    private final Function<String, ModelLoadWatch.Step> closing;
    private final Consumer<CompletableFuture<Void>> goesOn;

    private final AtomicInteger uses = new AtomicInteger(1);

    /**
     * Creates the owner of a model.
     *
     * @param closing begins to watch the close of an instance, by its name, or of the model, by an empty one
     * @param goesOn receives the start of an instance if it goes on when the instance is to be closed
     */
    LeasedModel(
            Model model,
            Resources resources,
            Function<String, ModelLoadWatch.Step> closing,
            Consumer<CompletableFuture<Void>> goesOn) {
        this.model = model;
        this.resources = resources;
        this.closing = closing;
        this.goesOn = goesOn;
    }

    /** Returns the backend's model. */
    Model model() {
        return model;
    }

    Resources resources() {
        return resources;
    }

    /**
     * Creates an instance. Blocks.
     *
     * @return the instance, owned by the caller
     * @throws dev.nereid.spi.BackendException as {@link BackendInstance#create}
     */
    BackendInstance newInstance(InstancePlan plan, TensorMemory memory, InstanceOptions options) {
        uses.incrementAndGet();
        return BackendInstance.create(model, plan, memory, options, this);
    }

    @Override
    public ResponseHolder responses() {
        return resources.responses();
    }

    @Override
    public void startGoesOn(CompletableFuture<Void> start) {
        goesOn.accept(start);
    }

    @Override
    public void closeInstance(String name, Runnable close) {
        try (ModelLoadWatch.Step _ = closing.apply(name)) {
            close.run();
        } finally {
            release();
        }
    }

    @Override
    public void close() {
        release();
    }

    /** Ends the use by the model, or by an instance. The last one closes the model. */
    private void release() {
        if (uses.decrementAndGet() > 0) {
            return;
        }
        try (ModelLoadWatch.Step _ = closing.apply("")) {
            try {
                model.close();
            } finally {
                resources.close();
            }
        }
    }
}
