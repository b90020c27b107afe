package dev.nereid.backend.tensorflow;

import dev.nereid.backend.tensorflow.capi.TfLibrary;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;

/**
 * Loads the Java API of TensorFlow on the same native library as the backend: a second copy would abort the process.
 * It makes the models of the tests, and is their oracle.
 */
public final class TensorFlowJava {
    /** The directory that the tests of this module share for unpacked libraries. */
    public static final Path CACHE = Path.of("target", "native").toAbsolutePath();

    private static final TfLibrary LIBRARY = load();

    private TensorFlowJava() {}

    /** Loads it, once. */
    public static void ensureLoaded() {
        if (LIBRARY.version().isEmpty()) {
            throw new AssertionError("TensorFlow: no version");
        }
    }

    /** Returns the library, which stays open. */
    public static TfLibrary library() {
        return LIBRARY;
    }

    @SuppressWarnings("restricted") // TensorFlow Java is bound by JNI
    private static TfLibrary load() {
        try {
            TfLibrary library = TfLibrary.open(CACHE, TensorFlowJava.class.getClassLoader(), CACHE);
            System.setProperty("org.bytedeco.javacpp.loadlibraries", "false");
            System.load(unpacked("org/bytedeco/javacpp/linux-x86_64/libjnijavacpp.so"));
            System.load(unpacked("org/tensorflow/internal/c_api/linux-x86_64/libjnitensorflow.so"));
            return library;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static String unpacked(String resource) throws IOException {
        Path directory = Files.createDirectories(CACHE.resolve("jni"));
        Path file = directory.resolve(resource.substring(resource.lastIndexOf('/') + 1));
        Path partial = Files.createTempFile(directory, "jni", ".partial");
        try (InputStream in = TensorFlowJava.class.getClassLoader().getResourceAsStream(resource)) {
            Files.copy(in, partial, StandardCopyOption.REPLACE_EXISTING);
        }
        Files.move(partial, file, StandardCopyOption.ATOMIC_MOVE);
        return file.toString();
    }
}
