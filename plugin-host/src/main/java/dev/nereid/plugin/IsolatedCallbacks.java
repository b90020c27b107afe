package dev.nereid.plugin;

import dev.nereid.api.BackendCallbacks;
import dev.nereid.plugin.boundary.IsolatedModelClient;
import dev.nereid.plugin.boundary.PluginBoundary;
import dev.nereid.spi.Fence;
import dev.nereid.spi.ModelClient;
import java.util.Map;
import java.util.concurrent.Executor;

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
}
