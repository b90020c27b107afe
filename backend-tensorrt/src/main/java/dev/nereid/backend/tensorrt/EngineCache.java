package dev.nereid.backend.tensorrt;

import dev.nereid.backend.tensorrt.runtime.BuildRequest;
import dev.nereid.backend.tensorrt.runtime.TensorRtRuntime;
import dev.nereid.cuda.Gpu;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.security.DigestInputStream;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.List;
import java.util.stream.Stream;

/**
 * Engines that were built from models of ONNX, by what they depend on: the content of the model's file and of those
 * beside and below it, which may be its external data, how it was built, the kind of GPU and the version of TensorRT.
 * Several servers may share the directory. Safe for use by several threads.
 */
final class EngineCache {
    private final Path directory;

    /** Creates the cache; its directory is made when the first engine is built. */
    EngineCache(Path directory) {
        this.directory = directory;
    }

    /**
     * Returns the plan of an engine, built on the GPU with the current context if it is not there.
     *
     * @throws BackendException if it cannot be built or written, or if files of the model change meanwhile
     */
    Path plan(TensorRtRuntime runtime, BuildRequest request, Gpu gpu) {
        try {
            String key = key(runtime, request, gpu);
            Path plan = directory.resolve(key + ".plan");
            if (Files.isRegularFile(plan)) {
                return plan;
            }
            byte[] content = runtime.build(request);
            if (!key(runtime, request, gpu).equals(key)) {
                throw new BackendException(
                        ErrorCode.UNAVAILABLE,
                        "engine of " + request.onnx().getFileName()
                                + ": files of the model changed while it was built (expected: files that stay as they are)");
            }
            Files.createDirectories(directory);
            Path partial = Files.createTempFile(directory, "engine", ".part");
            Files.write(partial, content);
            return Files.move(partial, plan, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
        } catch (IOException | UncheckedIOException e) {
            throw new BackendException(ErrorCode.UNAVAILABLE, "engine of " + request.onnx() + ": " + e, e);
        }
    }

    /** Returns the name of an engine: a digest of model, request, GPU and TensorRT version. */
    static String key(TensorRtRuntime runtime, BuildRequest request, Gpu gpu) throws IOException {
        MessageDigest digest = sha256();
        Path model = request.onnx().toAbsolutePath();
        Path parent = model.resolveSibling("");
        digest(model, digest);
        List<Path> others;
        try (Stream<Path> files = Files.walk(parent)) {
            others = files.filter(file -> mayBeData(file) && !file.equals(model))
                    .sorted()
                    .toList();
        }
        for (Path other : others) {
            digest.update(("\n" + parent.relativize(other) + "\n" + Files.size(other) + "\n")
                    .getBytes(StandardCharsets.UTF_8));
            digest(other, digest);
        }
        String rest =
                "\n" + request.key() + "\n" + gpu.name() + "\n" + gpu.computeCapability() + "\n" + runtime.version();
        digest.update(rest.getBytes(StandardCharsets.UTF_8));
        return HexFormat.of().formatHex(digest.digest());
    }

    /** Returns whether a file may have external data; hidden files belong to editors and copying programs. */
    private static boolean mayBeData(Path file) {
        return Files.isRegularFile(file) && !String.valueOf(file.getFileName()).startsWith(".");
    }

    private static void digest(Path file, MessageDigest digest) throws IOException {
        try (InputStream in = new DigestInputStream(Files.newInputStream(file), digest)) {
            in.transferTo(OutputStream.nullOutputStream());
        }
    }

    private static MessageDigest sha256() {
        try {
            return MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("SHA-256: every Java runtime has it", e);
        }
    }
}
