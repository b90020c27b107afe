package dev.nereid.backend.tensorflow.capi;

import dev.nereid.backend.natives.HostMachine;
import dev.nereid.backend.natives.LibraryArchive;
import dev.nereid.backend.natives.LibraryDirectory;
import dev.nereid.backend.natives.LibrarySource;
import dev.nereid.backend.natives.NativeProduct;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;

/**
 * An operating system and processor for which TensorFlow Java is published. Immutable.
 *
 * @param directories the names of the directories in the artifacts of the platform, such as {@code linux-x86_64}; the
 *     build for GPUs first
 * @param libraryFile the file name of the library with the C API
 */
public record NativePlatform(List<String> directories, String libraryFile) {
    private static final String PACKAGE = "org/tensorflow/internal/c_api/";
    private static final String LINUX_LIBRARY = "libtensorflow_cc.so.2";
    /** Of the Java API, which is not used. */
    private static final String JAVA_API = "libjni";

    public NativePlatform {
        directories = List.copyOf(directories);
    }

    /** Returns a machine's platform; throws {@link UnsupportedOperationException} without TensorFlow Java for it. */
    static NativePlatform of(HostMachine machine) {
        String processor = switch (machine.processor().toLowerCase(Locale.ROOT)) {
            case "x86_64", "amd64" -> "x86_64";
            case "aarch64", "arm64" -> "arm64";
            default -> machine.processor();
        };
        return switch (machine.system() + "-" + processor) {
            case "Linux-x86_64" -> new NativePlatform(List.of("linux-x86_64-gpu", "linux-x86_64"), LINUX_LIBRARY);
            case "Linux-arm64" -> new NativePlatform(List.of("linux-arm64"), LINUX_LIBRARY);
            case "Darwin-arm64" -> new NativePlatform(List.of("macosx-arm64"), "libtensorflow_cc.2.dylib");
            default ->
                throw new UnsupportedOperationException("platform: " + machine.system() + " " + machine.processor()
                        + " (expected: Linux x86_64, Linux aarch64 or Darwin arm64)");
        };
    }

    /** Returns this process's platform; throws {@link UnsupportedOperationException} without TensorFlow Java for it. */
    public static NativePlatform current() {
        return of(HostMachine.current());
    }

    /** Returns whether the processor must have AVX, with which TensorFlow is built. */
    boolean needsAvx() {
        return directories.contains("linux-x86_64");
    }

    /**
     * Returns the unpacked library of this platform. Called under {@link TfLibrary}'s lock.
     *
     * @param plugin the directory of the plugin; its subdirectory {@code natives} holds the artifact
     * @param classes finds an artifact among the plugin's own jars otherwise
     * @param cache the directory to unpack into
     * @throws IOException if the artifact is missing or damaged, or cannot be unpacked
     * @throws IllegalStateException if another TensorFlow is loaded in this process
     */
    Path library(Path plugin, ClassLoader classes, Path cache) throws IOException {
        NativeProduct product = new NativeProduct("TensorFlow", "tensorflow", libraryFile, "700 MB");
        LibrarySource source = new LibrarySource(
                "tensorflow-core-native-…-" + this + ".jar",
                directories.stream().map(directory -> PACKAGE + directory + "/").toList(),
                List.of(libraryFile),
                name -> !name.startsWith(JAVA_API));
        LibraryArchive archive = LibraryArchive.find(plugin, classes, List.of(source));
        return LibraryDirectory.find(product, archive, cache).resolve(libraryFile);
    }

    /** Returns the name of the platform, such as {@code linux-x86_64}. */
    @Override
    public String toString() {
        return directories.getLast();
    }
}
