package dev.nereid.backend.tensorrt.presets;

import dev.nereid.backend.tensorrt.runtime.TensorRtRuntime;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * Loads the libraries that TensorRT needs, and no others: that of JavaCPP, {@code libnvinfer}, and what lies between
 * them. They stay in the process. Safe for use by several threads.
 *
 * <p>The presets would load cuBLAS and cuDNN as well, which nothing needs; so a property makes them load nothing.
 */
public final class NvInferLoader {
    private static final String LIBRARY = "libnvinfer.so.10";
    private static final String KERNELS = "libnvinfer_builder_resource*.so.*";
    private static final String PARSER = "libnvonnxparser.so.10";
    private static final String BRIDGES = "/org/bytedeco/tensorrt/linux-x86_64/";
    private static final String JAVACPP = "/org/bytedeco/javacpp/linux-x86_64/libjnijavacpp.so";

    /** Libraries are loaded once for each class loader. */
    private static final ReentrantLock LOCK = new ReentrantLock();

    private static @Nullable NvInfer loaded;
    private static boolean withParser;

    private final List<Path> directories;
    private final Path cache;

    /**
     * Creates the loader.
     *
     * @param directories where the libraries of TensorRT are looked for, in this order, before the dynamic linker is asked
     * @param cache a directory for the libraries that the plugin has in its jars
     */
    public NvInferLoader(List<Path> directories, Path cache) {
        this.directories = List.copyOf(directories);
        this.cache = cache;
    }

    /**
     * Loads TensorRT, the same for each call, after the driver was found.
     *
     * @throws BackendException {@link ErrorCode#UNAVAILABLE} with the missing piece
     */
    public TensorRtRuntime load() {
        LOCK.lock();
        try {
            NvInfer runtime = loaded;
            if (runtime == null) {
                System.setProperty("org.bytedeco.javacpp.loadlibraries", "false");
                load(unpack(JAVACPP));
                loadTensorRt(LIBRARY);
                load(unpack(BRIDGES + "libjninvinfer.so"));
                runtime = new NvInfer(this::loadParser);
                loaded = runtime;
            }
            return runtime;
        } catch (UnsatisfiedLinkError | IOException e) {
            throw unavailable(String.valueOf(e.getMessage()));
        } finally {
            LOCK.unlock();
        }
    }

    private void loadParser() {
        LOCK.lock();
        try {
            if (!withParser) {
                loadKernels();
                loadTensorRt(PARSER);
                load(unpack(BRIDGES + "libjninvonnxparser.so"));
                withParser = true;
            }
        } catch (UnsatisfiedLinkError | IOException e) {
            throw unavailable(String.valueOf(e.getMessage()));
        } finally {
            LOCK.unlock();
        }
    }

    /** Loads the kernels of the builder that lie beside TensorRT; it looks for others itself, and says so. */
    private void loadKernels() throws IOException {
        for (Path directory : directories) {
            if (Files.isRegularFile(directory.resolve(LIBRARY))) {
                List<Path> kernels = new ArrayList<>();
                try (DirectoryStream<Path> files = Files.newDirectoryStream(directory, KERNELS)) {
                    files.forEach(kernels::add);
                }
                if (!kernels.isEmpty()) {
                    NamedLibrary.load(kernels.stream().sorted().toList(), cache);
                }
                return;
            }
        }
    }

    private void loadTensorRt(String name) {
        for (Path directory : directories) {
            Path file = directory.resolve(name);
            if (Files.isRegularFile(file)) {
                load(file.toAbsolutePath());
                return;
            }
        }
        try {
            LinkerLibrary.open(name);
        } catch (IOException e) {
            throw unavailable(e.getMessage() + "; not in " + directories
                    + " either. Build the plugin with -Dtensorrt, or name the directory of TensorRT 10 by"
                    + " --backend-config=tensorrt,library-directory=DIR");
        }
    }

    @SuppressWarnings("restricted") // the libraries of the presets
    private static void load(Path library) {
        System.load(library.toString());
    }

    /** Writes a library of a jar of the plugin to the cache, unless it is there. */
    private Path unpack(String resource) throws IOException {
        Path target = cache.resolve(resource.substring(resource.lastIndexOf('/') + 1));
        if (Files.isRegularFile(target)) {
            return target;
        }
        try (InputStream in = NvInferLoader.class.getResourceAsStream(resource)) {
            if (in == null) {
                throw new IOException(
                        resource + ": not in the jars of the plugin (expected: the presets for linux-x86_64)");
            }
            Path partial = Files.createTempFile(cache, "library", ".part");
            Files.copy(in, partial, StandardCopyOption.REPLACE_EXISTING);
            Files.move(partial, target, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
        }
        return target;
    }

    private static BackendException unavailable(String reason) {
        return new BackendException(ErrorCode.UNAVAILABLE, "TensorRT unavailable: " + reason);
    }
}
