package dev.nereid.plugin;

import dev.nereid.api.BackendCallbacks;
import dev.nereid.plugin.boundary.IsolatedModelClient;
import dev.nereid.plugin.boundary.PluginBoundary;
import dev.nereid.spi.Fence;
import dev.nereid.spi.ModelClient;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.Executor;
import java.util.function.LongConsumer;
import org.jspecify.annotations.Nullable;

/** Calls a plugin outside of its executions, through the plugin boundary. Immutable; safe for use by any thread. */
record IsolatedCallbacks(Executor executor, PluginBoundary boundary) implements BackendCallbacks {
    @Override
    public void execute(Runnable action) {
        executor.execute(action);
    }

    @Override
    public Map<Thread, StackTraceElement[]> threads() {
        return boundary.threads();
    }

    @Override
    public Fence isolate(Fence fence) {
        return new IsolatedFence(fence, boundary);
    }

    @Override
    public Executor isolate(Executor threads) {
        return boundary.executor(threads);
    }

    @Override
    public ModelClient isolate(ModelClient client) {
        return new IsolatedModelClient(client, boundary);
    }

    /** Forwards to a plugin's fence through the plugin boundary. Immutable; safe for use by any thread. */
    static final class IsolatedFence implements Fence {
        private final Fence fence;
        private final PluginBoundary boundary;

        IsolatedFence(Fence fence, PluginBoundary boundary) {
            this.fence = fence;
            this.boundary = boundary;
        }

        @Override
        public boolean isDone() {
            return boundary.invokeOrElse("Fence.isDone", fence::isDone, () -> true); // await reports failed work
        }

        @Override
        public boolean await(Duration timeout) {
            return boundary.invoke("Fence.await", () -> fence.await(timeout));
        }

        /** Passes the event to an action, which belongs to another plugin or to the server: its failures are its own. */
        @Override
        public boolean withEvent(LongConsumer action) {
            ForeignAction foreign = new ForeignAction(action);
            boolean ran = boundary.invokeOrElse("Fence.withEvent", () -> fence.withEvent(foreign), foreign::hasRun);
            foreign.rethrow();
            return ran;
        }

        /** Keeps exceptions of an action from the plugin that calls it. Confined to one call. */
        private static final class ForeignAction implements LongConsumer {
            private final LongConsumer action;
            private boolean ran;
            private @Nullable Throwable failure;

            ForeignAction(LongConsumer action) {
                this.action = action;
            }

            @Override
            public void accept(long event) {
                ran = true;
                try {
                    action.accept(event);
                } catch (RuntimeException | Error e) {
                    failure = e;
                }
            }

            boolean hasRun() {
                return ran;
            }

            void rethrow() {
                if (failure instanceof RuntimeException thrown) {
                    throw thrown;
                }
                if (failure instanceof Error thrown) {
                    throw thrown;
                }
            }
        }
    }
}
