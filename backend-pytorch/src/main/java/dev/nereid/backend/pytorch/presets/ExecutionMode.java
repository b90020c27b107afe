package dev.nereid.backend.pytorch.presets;

import org.bytedeco.pytorch.global.torch;

/**
 * How a module is loaded and executed. Immutable.
 *
 * @param inference whether executions are in {@code InferenceMode}; otherwise only gradients are off
 * @param optimized whether scripts are optimized
 */
public record ExecutionMode(boolean inference, boolean optimized) {
    public static final ExecutionMode DEFAULT = new ExecutionMode(true, true);

    /** Enters the mode on the current thread; to be closed on the same one, before it may wait for anything. */
    ModeGuard enter() {
        if (torch.getGraphExecutorOptimize() != optimized) { // of the thread
            torch.setGraphExecutorOptimize(optimized);
        }
        return new ModeGuard(inference);
    }
}
