package dev.nereid.backend.tensorrt;

import dev.nereid.backend.tensorrt.runtime.BuildRequest;
import dev.nereid.backend.tensorrt.runtime.TensorRtRuntime;
import dev.nereid.cuda.Gpu;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.security.DigestInputStream;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;

/**
 * Engines that were built from models of ONNX, by what they depend on: the content of the model's file, how it was
 * built, the kind of GPU and the version of TensorRT. Several servers may share the directory. Safe for use by several
 * threads.
 */
final class EngineCache {
    private static final int BUFFER = 1 << 16;

    private final Path directory;

    /**
     * Creates the cache.
     *
     * @param directory made when the first engine is built
     */
    EngineCache(Path directory) {
        this.directory = directory;
    }

    /**
     * Returns the plan of an engine, built if it is not there.
     *
     * @param runtime builds it, on the GPU whose context is current
     * @param gpu that GPU
     * @throws BackendException if it cannot be built or written
     */
    Path plan(TensorRtRuntime runtime, BuildRequest request, Gpu gpu) throws BackendException {
        try {
            Path plan = directory.resolve(key(runtime, request, gpu) + ".plan");
            if (Files.isRegularFile(plan)) {
                return plan;
            }
            byte[] content = runtime.build(request);
            Files.createDirectories(directory);
            Path partial = Files.createTempFile(directory, "engine", ".part");
            Files.write(partial, content);
            return Files.move(partial, plan, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
        } catch (IOException e) {
            throw new BackendException(ErrorCode.UNAVAILABLE, "engine of " + request.onnx() + ": " + e, e);
        }
    }

    /** Returns the name of an engine: a digest of what it depends on. */
    static String key(TensorRtRuntime runtime, BuildRequest request, Gpu gpu) throws IOException {
        MessageDigest digest = sha256();
        try (InputStream in = new DigestInputStream(Files.newInputStream(request.onnx()), digest)) {
            byte[] buffer = new byte[BUFFER];
            while (in.read(buffer) >= 0) {
                // the digest reads along
            }
        }
        String rest =
                "\n" + request.key() + "\n" + gpu.name() + "\n" + gpu.computeCapability() + "\n" + runtime.version();
        digest.update(rest.getBytes(StandardCharsets.UTF_8));
        return HexFormat.of().formatHex(digest.digest());
    }

    private static MessageDigest sha256() {
        try {
            return MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("SHA-256: every Java runtime has it", e);
        }
    }
}
