package dev.nereid.backend.onnx;

import dev.nereid.backend.onnx.ort.NativePlatform;
import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendContext;
import dev.nereid.spi.BackendProvider;
import java.util.Optional;
import java.util.Set;

/** Entry point of the plugin: creates the ONNX Runtime backend. Immutable. */
public final class OnnxBackendProvider implements BackendProvider {
    /** Creates the provider; called by the service loader. */
    public OnnxBackendProvider() {}

    @Override
    public String name() {
        return "onnxruntime";
    }

    @Override
    public Set<String> platforms() {
        return Set.of("onnxruntime_onnx");
    }

    /** Returns whether the artifact has a library for this platform, without loading or unpacking it. */
    @Override
    public Optional<String> unavailable() {
        NativePlatform platform;
        try {
            platform = NativePlatform.current();
        } catch (UnsupportedOperationException e) {
            return Optional.of("not available: " + e.getMessage());
        }
        boolean isPacked = OnnxBackendProvider.class.getClassLoader().getResource(platform.resource()) != null;
        return isPacked
                ? Optional.empty()
                : Optional.of("not available: " + platform.resource() + " is not in the plugin's jars");
    }

    @Override
    public Backend create(BackendContext context) {
        return OnnxBackend.open(context);
    }
}
