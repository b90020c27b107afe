package dev.nereid.backend.tensorrt;

import dev.nereid.backend.tensorrt.presets.NvInferLoader;
import dev.nereid.cuda.GpuDiscovery;
import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendContext;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.ErrorCode;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/** Provider of the backend {@code tensorrt}. Immutable. */
public final class TensorRtBackendProvider implements BackendProvider {
    private static final String UNAVAILABLE = "TensorRT unavailable: ";
    private static final String LIBRARY_DIRECTORY = "library-directory";

    @Override
    public String name() {
        return "tensorrt";
    }

    @Override
    public Set<String> platforms() {
        return Set.of("tensorrt_plan");
    }

    /** Asks the driver first: without one, no library of TensorRT is loaded. */
    @Override
    public Optional<String> unavailable() {
        GpuDiscovery found = GpuDiscovery.run();
        return found.gpus().isEmpty() ? Optional.of(UNAVAILABLE + found.report()) : Optional.empty();
    }

    @Override
    public Backend create(BackendContext context) {
        GpuDiscovery found = GpuDiscovery.run();
        if (found.gpus().isEmpty()) {
            throw new BackendException(ErrorCode.UNAVAILABLE, UNAVAILABLE + found.report());
        }
        List<Path> directories = new ArrayList<>();
        context.settings().text(LIBRARY_DIRECTORY).map(Path::of).ifPresent(directories::add);
        directories.add(context.pluginDirectory().resolve("natives"));
        return new TensorRtBackend(
                new NvInferLoader(directories, context.cacheDirectory()).load(),
                found,
                new EngineCache(context.cacheDirectory().resolve("engines")));
    }
}
