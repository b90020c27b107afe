package dev.nereid.examples.ptx;

import dev.nereid.cuda.GpuContext;
import dev.nereid.cuda.GpuDiscovery;
import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendContext;
import dev.nereid.spi.BackendProvider;
import java.util.Optional;
import java.util.function.IntFunction;
import java.util.function.Supplier;

/** Provider of the backend {@code ptx}. Immutable. */
public final class PtxBackendProvider implements BackendProvider {
    private final Supplier<Optional<String>> missing;
    private final IntFunction<GpuContext> gpus;

    /** Creates a provider for the GPUs of this machine. */
    public PtxBackendProvider() {
        this(PtxBackendProvider::missingGpu, GpuContext::open);
    }

    /**
     * Creates a provider for other GPUs.
     *
     * @param missing returns why there is no GPU, or empty if there is one
     * @param gpus opens the GPU of a number
     */
    PtxBackendProvider(Supplier<Optional<String>> missing, IntFunction<GpuContext> gpus) {
        this.missing = missing;
        this.gpus = gpus;
    }

    private static Optional<String> missingGpu() {
        GpuDiscovery found = GpuDiscovery.run();
        return found.gpus().isEmpty() ? Optional.of(found.report()) : Optional.empty();
    }

    @Override
    public String name() {
        return "ptx";
    }

    @Override
    public Optional<String> unavailable() {
        return missing.get();
    }

    @Override
    public Backend create(BackendContext context) {
        return new PtxBackend(gpus);
    }
}
