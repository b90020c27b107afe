package dev.nereid.backend.onnx.ort;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import ai.onnxruntime.OrtEnvironment;
import java.io.IOException;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import java.util.stream.Stream;

/** The native library and the models of the tests. Stateless, except the oracle's environment. */
public final class TestModels {
    /**
     * The oracle loads its own copy of the native library first. In the reverse order, its JNI part would be linked to
     * the copy under test, which could then never be unloaded.
     */
    private static final OrtEnvironment ORACLE = OrtEnvironment.getEnvironment();

    private TestModels() {}

    /** Returns the oracle: the artifact's own Java API. */
    public static OrtEnvironment oracle() {
        return ORACLE;
    }

    /** Unpacks the native library to the build directory, or returns the unpacked file. */
    static Path nativeLibrary() throws IOException {
        return NativeLibraryFile.unpack(
                NativePlatform.current(), TestModels.class.getClassLoader(), Path.of("target", "native"));
    }

    /** Opens the library; the caller closes it. */
    static OrtLibrary openLibrary() throws IOException, OrtException {
        return OrtLibrary.open(nativeLibrary(), NativePlatform.current());
    }

    /** Returns one of the models made by {@code make_models.py}. */
    public static Path model(String name) {
        try {
            return Path.of(TestModels.class.getResource("/models/" + name).toURI());
        } catch (URISyntaxException e) {
            throw new IllegalStateException(e);
        }
    }

    /** Returns a real model of the shared directory; skips the test where that is absent. */
    public static Path sharedModel(String name) {
        Optional<Path> shared = sharedDirectory();
        assumeTrue(shared.isPresent(), "../shared/models is absent");
        Path model = shared.get().resolve("models").resolve(name);
        assumeTrue(Files.isRegularFile(model), "../shared/models/" + name + " is absent");
        return model;
    }

    private static Optional<Path> sharedDirectory() {
        String property = System.getProperty("nereid.shared");
        if (property != null) {
            return Optional.of(Path.of(property)).filter(Files::isDirectory);
        }
        return Stream.iterate(Path.of("").toAbsolutePath(), path -> path != null, Path::getParent)
                .map(path -> path.resolve("shared"))
                .filter(path -> Files.isDirectory(path.resolve("models")))
                .findFirst();
    }
}
