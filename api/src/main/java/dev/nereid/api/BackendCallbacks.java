package dev.nereid.api;

import dev.nereid.spi.Fence;
import dev.nereid.spi.ModelClient;
import dev.nereid.spi.ModelSettings;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executor;
import org.jspecify.annotations.Nullable;

/** Calls code of a backend outside of its executions. Safe for use by any thread. */
@FunctionalInterface
public interface BackendCallbacks extends Executor {
    /** The number of stacks in a report beside the first. */
    int MAX_OTHERS = 4;

    /** The prefixes of the names of threads that work for one model version; the model's name follows. */
    List<String> OF_MODELS = List.of("instance/", "executor/");

    /**
     * Runs an action, such as one for {@link dev.nereid.spi.ResponseSender#onReady}. Never on the calling thread.
     *
     * @param action the action, which handles what the backend throws
     */
    @Override
    void execute(Runnable action);

    /**
     * Returns a fence that calls a fence of the backend.
     *
     * @param fence the fence of the backend
     * @return the fence that is called in its place
     */
    default Fence isolate(Fence fence) {
        return fence;
    }

    /**
     * Returns a client that passes responses to the backend in the way in which this calls the backend.
     *
     * @param client sends the requests
     * @return the client that the backend gets in its place
     */
    default ModelClient isolate(ModelClient client) {
        return client;
    }

    /**
     * Returns an executor that runs tasks in the way in which this runs other code of the backend.
     *
     * @param threads runs the tasks
     * @return the executor that the backend gets in its place
     */
    default Executor isolate(Executor threads) {
        return threads;
    }

    /**
     * Finds the threads that are in code of the backend, for reports. Takes milliseconds.
     *
     * @return the threads with their stacks at this moment; empty if they are not known
     */
    default Map<Thread, StackTraceElement[]> threads() {
        return Map.of();
    }

    /**
     * Reads the stacks of some of its {@linkplain #threads threads}, for a report on a model. Threads that execute other models
     * of the plugin, or run their tasks, are left out.
     *
     * @param model the model of the report
     * @return the first stack with the others; {@code null} if no thread is in code of the backend
     */
    default @Nullable Throwable stacks(ModelSettings model) {
        ThreadStack first = null;
        int others = 0;
        for (Map.Entry<Thread, StackTraceElement[]> one : threads().entrySet()) {
            if (isOfAnother(one.getKey().getName(), model)) {
                continue;
            }
            ThreadStack stack = ThreadStack.of(one.getKey(), one.getValue());
            if (first == null) {
                first = stack;
            } else if (others < MAX_OTHERS) {
                first.addOther(stack);
                others++;
            }
        }
        return first;
    }

    private static boolean isOfAnother(String thread, ModelSettings model) {
        String own = model.name() + "/" + model.version() + "/";
        return OF_MODELS.stream().anyMatch(of -> thread.startsWith(of) && !thread.startsWith(own, of.length()));
    }
}
