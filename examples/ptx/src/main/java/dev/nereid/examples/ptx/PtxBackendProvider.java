package dev.nereid.examples.ptx;

import dev.nereid.cuda.GpuDiscovery;
import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendContext;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.ErrorCode;

/** Provider of the backend {@code ptx}. Immutable. */
public final class PtxBackendProvider implements BackendProvider {
    @Override
    public String name() {
        return "ptx";
    }

    @Override
    public Backend create(BackendContext context) throws BackendException {
        GpuDiscovery found = GpuDiscovery.run();
        if (found.gpus().isEmpty()) {
            throw new BackendException(ErrorCode.UNAVAILABLE, found.report());
        }
        return new PtxBackend();
    }
}
