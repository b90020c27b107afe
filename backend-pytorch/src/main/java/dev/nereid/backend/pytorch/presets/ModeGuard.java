package dev.nereid.backend.pytorch.presets;

import org.bytedeco.javacpp.Pointer;
import org.bytedeco.pytorch.InferenceMode;
import org.bytedeco.pytorch.NoGradGuard;

/** A mode of the current thread until it is closed. Confined to the thread. */
final class ModeGuard implements AutoCloseable {
    private final Pointer guard;

    ModeGuard(boolean inference) {
        guard = inference ? new InferenceMode(true) : new NoGradGuard();
    }

    @Override
    public void close() {
        guard.close();
    }
}
