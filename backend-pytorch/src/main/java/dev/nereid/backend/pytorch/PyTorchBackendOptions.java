package dev.nereid.backend.pytorch;

import dev.nereid.backend.natives.OptionValues;
import dev.nereid.spi.BackendContext;
import java.util.OptionalInt;

/**
 * Options of the backend from {@code --backend-config}. Immutable.
 *
 * @param processors how many processors the server may use
 * @param openBlasThreads the number of threads for one multiplication of matrices; empty to derive it from the models
 */
record PyTorchBackendOptions(int processors, OptionalInt openBlasThreads) {
    private static final String OPENBLAS_THREADS = "openblas-thread-count";
    private static final int MAX_THREADS = 1024;

    static PyTorchBackendOptions of(BackendContext context) {
        OptionValues values = new OptionValues(context.settings());
        OptionalInt threads = values.number(OPENBLAS_THREADS);
        if (threads.isPresent() && (threads.getAsInt() < 1 || threads.getAsInt() > MAX_THREADS)) {
            throw values.refused(
                    "openblas-thread-count: " + threads.getAsInt(), OPENBLAS_THREADS, "1 to " + MAX_THREADS);
        }
        return new PyTorchBackendOptions(context.processors(), threads);
    }
}
