package dev.nereid.backend.pytorch;

import dev.nereid.backend.natives.HostMachine;
import dev.nereid.backend.natives.LibraryArchive;
import dev.nereid.backend.natives.LibraryDirectory;
import dev.nereid.backend.natives.LibrarySource;
import dev.nereid.backend.natives.NativeProduct;
import dev.nereid.backend.pytorch.presets.TorchLibrary;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;

/** Unpacks the libraries of PyTorch into one directory, and loads them from it. Stateless. */
final class PyTorchNatives {
    private static final NativeProduct PRODUCT = new NativeProduct("PyTorch", "pytorch", TorchLibrary.FILE, "410 MB");
    private static final String PLATFORM = "linux-x86_64";

    private static final List<LibrarySource> SOURCES = List.of(
            source("javacpp", List.of("libjnijavacpp.so")),
            source("openblas", List.of("libquadmath.so.0", "libgfortran.so.5", "libopenblas.so.0")),
            source("pytorch", List.of("libgomp.so.1", "libc10.so", TorchLibrary.FILE, "libjnitorch.so")));

    /** The lock of all plugins of the process, whichever class loader they have: a constant is interned. */
    private static final String PROCESS = "dev.nereid.backend.pytorch";

    private PyTorchNatives() {}

    private static LibrarySource source(String name, List<String> libraries) {
        return LibrarySource.named(
                name + "-…-" + PLATFORM + ".jar", "org/bytedeco/" + name + "/" + PLATFORM + "/", libraries);
    }

    /**
     * Loads PyTorch from the plugin's directory, unpacking it into the cache first if that has not been done.
     *
     * @throws IOException if a library is missing, or cannot be unpacked or loaded
     * @throws IllegalStateException if another PyTorch is loaded in this process
     * @throws UnsupportedOperationException on another platform
     */
    static TorchLibrary load(Path plugin, Path cache) throws IOException {
        HostMachine machine = HostMachine.current();
        if (!machine.equals(new HostMachine("Linux", "x86_64"))) {
            throw new UnsupportedOperationException(
                    "platform: " + machine.system() + " " + machine.processor() + " (expected: Linux x86_64)");
        }
        synchronized (PROCESS) { // from the check of mapped libraries to the mapping
            LibraryArchive archive = LibraryArchive.find(plugin, PyTorchNatives.class.getClassLoader(), SOURCES);
            Path directory = LibraryDirectory.find(PRODUCT, archive, cache.toAbsolutePath());
            try {
                return TorchLibrary.open(directory);
            } catch (IOException e) { // for clients too
                throw new IOException(String.valueOf(e.getMessage()).replace(directory + "/", ""), e);
            }
        }
    }
}
